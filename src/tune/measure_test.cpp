// On a backend that is told how long its kernels take.
#include "tune/measure.h"

#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/reference/reference.h"

namespace convoy {
namespace {

Problem relu(const Shape& shape) {
    const TensorDesc whole = TensorDesc::whole(shape, DType::f32);
    return Problem::single(UnaryOp{}, {whole}, {whole}, DType::f32);
}

// Algorithms are named by the microseconds they take. Remembers how often each ran.
class SlowBackend : public Backend {
  public:
    const Target& target() const override { return reference_->target(); }
    std::unique_ptr<Memory> allocate(int64_t bytes) override { return reference_->allocate(bytes); }
    std::unique_ptr<Kernel> prepare(const KernelRequest& request) override {
        struct Busy : Kernel {
            std::chrono::microseconds time;
            int* runs;
            void run(const StepContext&) override {
                ++*runs;
                for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
                }
            }
        };
        for (const Operand& in : request.inputs)
            for (int64_t i = 0; i < numel(in.desc.shape); ++i) sane_ = sane_ && static_cast<float*>(in.data)[i] >= 0.5f;
        auto kernel = std::make_unique<Busy>();
        kernel->time = std::chrono::microseconds(std::stoi(request.algorithm));
        kernel->runs = &runs[request.algorithm];
        return kernel;
    }
    std::unique_ptr<Kernel> prepare_copy(const Operand& src, const Operand& dst) override { return reference_->prepare_copy(src, dst); }
    void upload(const Tensor& src, const Operand& dst) override { reference_->upload(src, dst); }
    void download(const Operand& src, Tensor& dst) override { reference_->download(src, dst); }
    void synchronize() override {}

    std::map<std::string, int> runs;
    bool sane_ = true;  // all inputs were ordinary numbers

  private:
    std::unique_ptr<Backend> reference_ = make_reference_backend({});
};

Candidate taking(int microseconds) {
    return {.algorithm = std::to_string(microseconds), .inputs = {Layout::plain()}, .outputs = {Layout::plain()}};
}

TEST(Measure, RanksCandidatesAndLeavesTheSlowBehind) {
    SlowBackend backend;
    const Problem problem = relu({4, 100});
    const auto seconds = Contest(backend, problem, {.rounds = 6}).run({taking(2000), taking(500), taking(520)});
    EXPECT_LT(seconds[1], seconds[0]);
    EXPECT_LT(seconds[2], seconds[0]);
    EXPECT_GE(seconds[0], 2e-3);
    EXPECT_GE(seconds[1], 5e-4);
    EXPECT_EQ(backend.runs["2000"], 4);  // to warm up, and three rounds
    EXPECT_EQ(backend.runs["500"], 7);
    EXPECT_TRUE(backend.sane_);
}

TEST(Measure, ABudgetEndsIt) {
    SlowBackend backend;
    const double seconds = measure(backend, relu({1}), taking(3000), {.cold = false, .rounds = 1000, .seconds = 0.01});
    EXPECT_GE(seconds, 3e-3);
    EXPECT_LE(backend.runs["3000"], 6);
    measure(backend, relu({1}), taking(4000), {.cold = false, .rounds = 1000, .seconds = 0});
    EXPECT_EQ(backend.runs["4000"], 2);  // one counts in any case
}

TEST(Measure, Copies) {
    const auto backend = make_reference_backend({});
    const double seconds = measure_copy(*backend, {.shape = {64, 1000}}, {});
    EXPECT_TRUE(std::isfinite(seconds));
    EXPECT_GT(seconds, 1e-7);
}

}  // namespace
}  // namespace convoy
