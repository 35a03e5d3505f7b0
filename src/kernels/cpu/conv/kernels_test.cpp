// The convolutions' vector kernels of every instruction set that this machine has, against those of the best one, which all other tests use.
#include <cmath>

#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;
using vec::VectorKernels;

// Runs one kernel of every table on the same numbers, which it may change, and compares what it leaves.
void expect_alike(Draw& d, int64_t floats, const std::function<void(const VectorKernels&, float*)>& run) {
    const Tensor numbers = d.normal({floats}).to(DType::f32);
    const auto tables = vec::vector_kernel_tables();
    Tensor best;
    for (int t = 0; t < tables.count; ++t) {
        Buffer memory(numbers.bytes());
        std::memcpy(memory.data(), numbers.data(), static_cast<size_t>(numbers.bytes()));
        run(*tables.tables[t], reinterpret_cast<float*>(memory.data()));
        Tensor found({floats}, DType::f32);
        std::memcpy(found.data(), memory.data(), static_cast<size_t>(numbers.bytes()));
        if (t == 0)
            best = found;
        else
            EXPECT_LE(distance(found, best), 2e-6) << tables.tables[t]->name;
    }
    EXPECT_GT(distance(best, numbers), 1e-3) << "nothing was computed";
}

TEST(ConvolutionKernels, InstructionSetsAgree) {
    for (int number = 0; number < test_count(6, 200); ++number) {
        Draw d("instruction sets", number);
        const int64_t lanes = number % 2 == 0 ? 16 : 8;
        SCOPED_TRACE(number);
        const int64_t m = d.between(1, 30), blocks = d.between(1, 3), k = d.between(1, 20);
        expect_alike(d, 16384, [&](const VectorKernels& table, float* at) {
            table.product({.lanes = lanes,
                           .m = m,
                           .blocks = blocks,
                           .k = k,
                           .a = at,
                           .b = at + 1024,
                           .c = at + 8192,
                           .a_row = k,
                           .b_row = 2 * lanes,
                           .b_panel = k * 2 * lanes,
                           .c_row = 4 * lanes,
                           .c_panel = 2 * lanes,
                           .add = number % 3 == 0,
                           .scale = -1});
        });
        const int64_t source[] = {0, lanes, 3 * lanes}, weight[] = {0, lanes * lanes, 0};
        expect_alike(d, 16384, [&](const VectorKernels& table, float* at) {
            table.direct({.lanes = lanes,
                          .source = at,
                          .weights = at + 4096,
                          .result = at + 8192,
                          .count = m,
                          .result_step = lanes,
                          .source_step = 2 * lanes,
                          .results = 1 + number % 2,
                          .result_block = 2048,
                          .result_weights = 1024,
                          .blocks = 2,
                          .source_block = 64 * lanes,
                          .source_weights = 512,
                          .taps = 3,
                          .source_offset = source,
                          .weight_offset = weight});
            table.direct_weight({.lanes = lanes,
                                 .x = at,
                                 .dy = at + 1024,
                                 .weights = at + 14336,
                                 .rows = 3,
                                 .count = 4,
                                 .x_row = 10 * lanes,
                                 .x_step = 2 * lanes,
                                 .dy_row = 4 * lanes});
        });
        const bool three = number % 3 == 0;
        for (const int outputs : {2, 4})
            for (const auto step : {vec::TileStep::Input, vec::TileStep::Weight, vec::TileStep::Output, vec::TileStep::OutputTurned,
                                    vec::TileStep::WeightTurned})
                expect_alike(d, 16384, [&](const VectorKernels& table, float* at) {
                    vec::TileArgs args{.lanes = lanes, .active = {three, true, true}, .from = {}, .to = {}};
                    args.from.data = at;
                    args.to.data = at + 8192;
                    for (int i = 0; i < 3; ++i) {
                        args.from.step[i] = args.to.step[i] = (i == 0 ? 64 : i == 1 ? 8 : 1) * lanes;
                        args.from.end[i] = args.to.end[i] = i == 0 && !three ? 1 : 6;
                    }
                    args.from.end[2] = 5;
                    table.winograd_tile(outputs, step, args);
                });
        const int64_t size = number % 2 == 0 ? 8 : 16;
        expect_alike(d, 24576, [&](const VectorKernels& table, float* at) {
            vec::TileArgs args{.lanes = lanes,
                               .active = {false, true, true},
                               .from = {},
                               .to = {},
                               .size = size,
                               .part_step = 4096,
                               .scratch = at + 16384};
            args.from.data = at;
            args.to.data = at + 8192;
            const int64_t half = size / 2 + 1;
            for (int i = 1; i < 3; ++i) {
                args.from.step[i] = (i == 1 ? size : 1) * lanes;
                args.to.step[i] = (i == 1 ? half : 1) * lanes;
                args.from.end[i] = size;
            }
            table.fourier_forward(args);
            std::swap(args.from, args.to);
            args.to.begin[1] = 1;
            args.to.spread[2] = 2;
            table.fourier_inverse(args);
            std::fill_n(args.scratch, 8192, 0.0f);  // what lies there is the table's own
        });
        expect_alike(d, 4096, [&](const VectorKernels& table, float* at) {
            table.scale_add({.x = at, .y = at + 2048, .x_step = 40, .y_step = 45, .lines = m, .lanes = 37, .factor = 0.5f});
            table.scale_add({.x = at, .y = at + 3500, .x_step = 1, .y_step = 1, .lines = 100, .lanes = 1, .factor = 2});
            at[4095] = table.dot(at, at + 1000, 1, 333) + table.dot(at, at + 1000, 2, 33);
        });
    }
}

}  // namespace
}  // namespace convoy::cpu
