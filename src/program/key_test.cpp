#include "program/key.h"

#include <set>

#include <gtest/gtest.h>

namespace convoy {
namespace {

Problem conv(const Shape& x, const Window& window, int64_t filters) {
    const Shape w = join({filters, x[1]}, window.kernel);
    return Problem::single(ConvOp{window}, {TensorDesc::whole(x, DType::f32), TensorDesc::whole(w, DType::f32)},
                           {TensorDesc::whole(join({x[0], filters}, window.output(x.slice(2))), DType::f32)}, DType::f32);
}

TEST(Key, SaysWhatShapesTheWork) {
    EXPECT_EQ(key_of(conv({8, 64, 56, 56}, Window::of({3, 3}), 32)),
              "conv k3x3 s1x1 d1x1 p0x0 q0x0 g1 (0 1 -> 2) | 8x64x56x56 32x64x3x3 -> 8x32x54x54 | f32");
}

TEST(Key, DiffersWithEveryAttributeThatMatters) {
    std::set<std::string> keys;
    Window w = Window::of({3, 3});
    keys.insert(key_of(conv({2, 4, 9, 9}, w, 4)));
    keys.insert(key_of(conv({2, 4, 9, 9}, w, 5)));
    keys.insert(key_of(conv({2, 4, 9, 8}, w, 4)));
    w.pad_lo = {1, 1};
    keys.insert(key_of(conv({2, 4, 9, 9}, w, 4)));
    w.pad_hi = {1, 0};
    keys.insert(key_of(conv({2, 4, 9, 9}, w, 4)));
    Problem f64 = conv({2, 4, 9, 9}, w, 4);
    f64.compute = DType::f64;
    keys.insert(key_of(f64));
    Problem grouped = conv({2, 4, 9, 9}, w, 4);
    std::get<ConvOp>(grouped.steps[0].op).groups = 2;
    keys.insert(key_of(grouped));
    EXPECT_EQ(keys.size(), 7u);
}

TEST(Key, IsTheSameOnEveryRankAndInEveryModel) {
    const auto dropout = [](uint32_t stream, int64_t origin) {
        TensorDesc part{.shape = {4, 8}, .dtype = DType::f32, .global = {8, 8}, .origin = {origin, 0}};
        return Problem::single(DropoutOp{.p = 0.5, .stream = stream, .first_sample = origin}, {part}, {part}, DType::f32);
    };
    EXPECT_EQ(key_of(dropout(1, 0)), key_of(dropout(2, 4)));
}

TEST(Key, ACandidateIsItsAlgorithmAndLayouts) {
    const Candidate c{.algorithm = "fast", .inputs = {Layout::blocked(4, 16), Layout::plain()}, .outputs = {Layout::channels_last(4)}};
    EXPECT_EQ(key_of(c), "fast aBcd16b,plain -> acdb");
    Candidate narrow = c;
    narrow.input_types = {DType::bf16, DType::f32};
    EXPECT_EQ(key_of(narrow), "fast aBcd16b:bf16,plain:f32 -> acdb");
    EXPECT_EQ(key_of(CopyProblem{.shape = {2, 3}, .to = Layout::channels_last(2)}), "copy 2x3 plain f32 -> ab f32");
}

}  // namespace
}  // namespace convoy
