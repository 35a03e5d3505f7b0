// Sums of lines, by every instruction set that this machine has, against the same sums in double.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/vector/kernels.h"

namespace convoy::cpu::vec {
namespace {

constexpr int64_t kLines = 7, kStep = 48;

std::vector<float> some_values(int seed) {
    std::vector<float> values(kLines * kStep);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(seed * 1000) + static_cast<float>(i));
    return values;
}

struct Ending {
    bool last;
    float slope;
};

void check(const VectorKernels& kernels, int count, bool add, const Ending& ending) {
    const std::vector<float> bias = some_values(9), before = some_values(8);
    std::vector<std::vector<float>> sources;
    std::vector<float> result = before;
    CombineArgs args{.count = count, .src_step = kStep, .dst_step = kStep - 16, .dst = result.data(), .add = add, .last = ending.last};
    args.bias = bias.data();
    args.slope = ending.slope;
    for (int k = 0; k < count; ++k) sources.push_back(some_values(k));
    for (int k = 0; k < count; ++k) {
        args.src[k] = sources[static_cast<size_t>(k)].data();
        args.factor[k] = static_cast<float>(k) - 1.5f;
    }
    kernels.combine(args, kLines);
    for (int64_t i = 0; i < kLines * kStep; ++i) {
        const int64_t line = i / args.dst_step, lane = i % args.dst_step;
        const auto at = static_cast<size_t>(i);
        if (line >= kLines || lane >= 16) {
            ASSERT_EQ(result[at], before[at]) << "written between lines, at " << i;
            continue;
        }
        double sum = add && count > 0 ? static_cast<double>(before[at]) : 0;
        for (int k = 0; k < count; ++k)
            sum += static_cast<double>(args.factor[k]) * static_cast<double>(args.src[k][line * args.src_step + lane]);
        if (ending.last && count > 0) {
            sum += static_cast<double>(bias[static_cast<size_t>(lane)]);
            if (sum <= 0) sum *= static_cast<double>(ending.slope);
        }
        ASSERT_NEAR(result[at], sum, 1e-5) << "line " << line << ", lane " << lane;
    }
}

TEST(Combine, EveryInstructionSet) {
    const auto tables = vector_kernel_tables();
    for (int t = 0; t < tables.count; ++t)
        for (int count = 0; count <= kMostLines; ++count)
            for (const bool add : {false, true})
                for (const Ending& ending : {Ending{false, 1}, Ending{true, 1}, Ending{true, 0}, Ending{true, 0.1f}}) {
                    SCOPED_TRACE(tables.tables[t]->name);
                    check(*tables.tables[t], count, add, ending);
                }
}

TEST(Combine, ReluOfMinusInfinityIsZero) {
    const auto tables = vector_kernel_tables();
    const std::vector<float> low(16, -std::numeric_limits<float>::infinity());
    for (int t = 0; t < tables.count; ++t) {
        std::vector<float> result(16, 1);
        CombineArgs args{.count = 1, .src = {low.data()}, .factor = {1}, .dst = result.data(), .last = true, .slope = 0};
        tables.tables[t]->combine(args, 1);
        EXPECT_EQ(result, std::vector<float>(16, 0)) << tables.tables[t]->name;
    }
}

}  // namespace
}  // namespace convoy::cpu::vec
