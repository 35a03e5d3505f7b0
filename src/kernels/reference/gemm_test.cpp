#include "kernels/reference/gemm.h"

#include <cmath>

#include "kernels/reference/test_support.h"

namespace convoy::ref {
namespace {

using namespace testing;

// A product with matrices inside larger ones, and what c was before.
template <class T>
struct Problem {
    Tensor a, b, c;
    Gemm<T> gemm;

    explicit Problem(Draw& draw) {
        gemm.m = draw.between(1, 40);
        gemm.n = draw.between(1, 150);
        gemm.k = draw.between(1, 90);
        gemm.transpose_a = draw.coin();
        gemm.transpose_b = draw.coin();
        gemm.alpha = static_cast<T>(draw.between(-1, 2));
        gemm.beta = static_cast<T>(draw.between(0, 2));
        const auto matrix = [&](int64_t rows, int64_t columns, bool transpose, int64_t& stride) {
            stride = (transpose ? rows : columns) + draw.between(0, 3);
            return draw.normal({transpose ? columns : rows, stride}).to(dtype_of<T>());
        };
        a = matrix(gemm.m, gemm.k, gemm.transpose_a, gemm.lda);
        b = matrix(gemm.k, gemm.n, gemm.transpose_b, gemm.ldb);
        c = matrix(gemm.m, gemm.n, false, gemm.ldc);
        gemm.a = a.template as<T>().data();
        gemm.b = b.template as<T>().data();
    }

    Tensor expected() const {
        Tensor result = c;
        const auto at = [](const T* p, int64_t stride, bool transpose, int64_t i, int64_t j) {
            return static_cast<double>(transpose ? p[j * stride + i] : p[i * stride + j]);
        };
        for (int64_t i = 0; i < gemm.m; ++i)
            for (int64_t j = 0; j < gemm.n; ++j) {
                double sum = 0;
                for (int64_t p = 0; p < gemm.k; ++p)
                    sum += at(gemm.a, gemm.lda, gemm.transpose_a, i, p) * at(gemm.b, gemm.ldb, gemm.transpose_b, p, j);
                auto& value = result.template as<T>()[static_cast<size_t>(i * gemm.ldc + j)];
                value = static_cast<T>(gemm.alpha * sum + gemm.beta * value);
            }
        return result;
    }

    template <class Fn>
    Tensor result(const Fn& fn) const {
        Tensor result = c;
        Gemm<T> g = gemm;
        g.c = result.template as<T>().data();
        fn(g);
        return result;
    }
};

template <class T>
void check_random_products(double tolerance) {
    for (int i = 0; i < test_count(60, 600); ++i) {
        Draw draw("gemm", i);
        const Problem<T> problem(draw);
        const Tensor expected = problem.expected();
        EXPECT_LT(relative_error(problem.result([](const Gemm<T>& g) { gemm(g); }), expected), tolerance) << i;
        EXPECT_LT(relative_error(problem.result([](const Gemm<T>& g) { gemm_plain(g); }), expected), tolerance) << i;
        for (const int threads : {2, 5})
            EXPECT_LT(relative_error(problem.result([&](const Gemm<T>& g) { gemm(g, threads); }), expected), tolerance) << i;
    }
}

TEST(Gemm, AgreesWithTheDefinitionInF64) { check_random_products<double>(1e-13); }
TEST(Gemm, AgreesWithTheDefinitionInF32) { check_random_products<float>(1e-5); }

TEST(Gemm, EmptySumIsBetaTimesC) {
    std::vector<double> c{1, 2, 3, 4};
    gemm(Gemm<double>{.m = 2, .n = 2, .k = 0, .c = c.data(), .ldc = 2, .beta = 2});
    EXPECT_EQ(c, (std::vector<double>{2, 4, 6, 8}));
    gemm(Gemm<double>{.m = 2, .n = 2, .k = 0, .c = c.data(), .ldc = 2});
    EXPECT_EQ(c, (std::vector<double>{0, 0, 0, 0}));
}

TEST(Gemm, BetaZeroDoesNotReadC) {
    const std::vector<float> a{1, 2}, b{3, 4};
    for (const auto& product : {gemm<float>, gemm_plain<float>}) {
        std::vector<float> c{std::nanf("")};
        product(Gemm<float>{.m = 1, .n = 1, .k = 2, .a = a.data(), .lda = 2, .b = b.data(), .ldb = 1, .c = c.data(), .ldc = 1});
        EXPECT_EQ(c[0], 11);
    }
}

}  // namespace
}  // namespace convoy::ref
