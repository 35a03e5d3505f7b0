// For tests of the own implementations: runs a problem by every candidate that is offered, in all layouts, and compares with the reference in
// float64, step by step on the same inputs. What a kernel does not write, writes too far, or reads before writing is seen.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/own.h"
#include "kernels/problem_testing.h"

namespace convoy::cpu::testing {

using namespace convoy::op_testing;

// Memory between two guards.
class GuardedMemory {
  public:
    explicit GuardedMemory(int64_t bytes) : bytes_(bytes), buffer_(bytes + 2 * kGuard) {
        std::memset(buffer_.data(), kGuardByte, static_cast<size_t>(buffer_.bytes()));
        poison();
    }
    // All bits set is NaN in every float and no index.
    void poison() { std::memset(data(), 0xff, static_cast<size_t>(bytes_)); }
    void clear() { std::memset(data(), 0, static_cast<size_t>(bytes_)); }
    std::byte* data() const { return buffer_.data() + kGuard; }
    int64_t bytes() const { return bytes_; }
    bool intact() const {
        for (int64_t i = 0; i < kGuard; ++i)
            if (buffer_.data()[i] != std::byte{kGuardByte} || data()[bytes_ + i] != std::byte{kGuardByte}) return false;
        return true;
    }

  private:
    static constexpr int64_t kGuard = 256;
    static constexpr unsigned char kGuardByte = 0xa5;
    int64_t bytes_;
    Buffer buffer_;
};

// Calls fn(row-major offset, index) for every element of a shape.
inline void for_each_index(const Shape& shape, const std::function<void(int64_t, const Dims&)>& fn) {
    Dims index = Dims::filled(shape.size(), 0);
    for (int64_t i = 0; i < numel(shape); ++i) {
        fn(i, index);
        for (int d = shape.size() - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
    }
}

// Where every element of a shape lies in a layout, in row-major order.
inline std::vector<int64_t> offsets_of(const Shape& shape, const Layout& layout) {
    std::vector<int64_t> offsets(static_cast<size_t>(numel(shape)));
    for_each_index(shape, [&](int64_t i, const Dims& index) { offsets[static_cast<size_t>(i)] = element_offset(shape, layout, index); });
    return offsets;
}

inline void place(const Tensor& plain, const std::vector<int64_t>& offsets, GuardedMemory& memory) {
    memory.clear();
    const int64_t size = size_of(plain.dtype());
    for (size_t i = 0; i < offsets.size(); ++i)
        std::memcpy(memory.data() + offsets[i] * size, plain.data() + static_cast<int64_t>(i) * size, static_cast<size_t>(size));
}

// The elements; fails the test when padding is not zero.
inline Tensor taken(const TensorDesc& desc, const std::vector<int64_t>& offsets, const GuardedMemory& memory) {
    Tensor plain(desc.shape, desc.dtype);
    const int64_t size = size_of(desc.dtype);
    std::vector<bool> used(static_cast<size_t>(memory.bytes() / size), false);
    for (size_t i = 0; i < offsets.size(); ++i) {
        std::memcpy(plain.data() + static_cast<int64_t>(i) * size, memory.data() + offsets[i] * size, static_cast<size_t>(size));
        used[static_cast<size_t>(offsets[i])] = true;
    }
    if (desc.dtype == DType::f32)
        for (size_t i = 0; i < used.size(); ++i) {
            float value;
            std::memcpy(&value, memory.data() + i * sizeof value, sizeof value);
            if (!used[i] && value != 0) {
                ADD_FAILURE() << "padding at " << i << " is " << value;
                break;
            }
        }
    return plain;
}

struct Check {
    double tolerance = 2e-6;
    double usual = 0;  // size of an element; smaller ones may have the errors of such
    StepContext context{.seed = 7, .step = 3};
    int number = 0;     // of the case: decides which numbers of threads and sizes of blocks are tried
    int64_t block = 0;  // the only size of blocks; 0: both

    std::vector<CpuContext> contexts() const {
        const int64_t blocks[] = {block ? block : 8, block ? block : 16};
        return {{1, blocks[number % 2]}, {2 + number / 2 % 2, blocks[1 - number % 2]}};
    }
};

// The layouts that may stand in the place of "same" for a shape.
inline std::vector<Layout> same_layouts(const Shape& shape, int64_t block) {
    CpuContext context;
    context.block = block;
    return activation_layouts(shape, context);
}

// The candidate with every "same" replaced.
inline std::vector<Candidate> resolved(const Problem& problem, const Candidate& candidate, int64_t block) {
    Shape shape;
    for (int t = 0; t < problem.inputs; ++t)
        if (candidate.inputs[static_cast<size_t>(t)] == Layout::same()) shape = shape_of(problem, t);
    if (shape.empty()) return {candidate};
    std::vector<Candidate> result;
    for (const auto& layout : same_layouts(shape, block)) {
        Candidate c = candidate;
        for (auto* layouts : {&c.inputs, &c.outputs})
            for (auto& l : *layouts)
                if (l == Layout::same()) l = layout;
        result.push_back(c);
    }
    return result;
}

class CandidateRun {
  public:
    CandidateRun(const Implementation& implementation, const Problem& problem, const Candidate& candidate, const CpuContext& context,
                 const std::vector<Tensor>& inputs)
        : problem_(problem), candidate_(candidate), inputs_(inputs), workspace_(candidate.workspace_bytes) {
        for (int t = 0; t < problem.inputs + problem.outputs; ++t) {
            memory_.emplace_back(bytes_of(desc(t).shape, desc(t).dtype, layout(t)));
            offsets_.push_back(offsets_of(desc(t).shape, layout(t)));
        }
        request_ = {problem, candidate.algorithm, {}, {}, workspace_.data()};
        implementation_ = &implementation;
        context_ = context;
    }

    // With output `output` in the place of input `input`, unless they are -1.
    std::vector<Tensor> operator()(const StepContext& step, int output = -1, int input = -1) {
        request_.inputs.clear();
        request_.outputs.clear();
        for (int t = 0; t < problem_.inputs; ++t) {
            const Tensor& value = inputs_[static_cast<size_t>(t)];
            place(is_floating(value.dtype()) ? value.to(DType::f32) : value, offsets_[static_cast<size_t>(t)], at(t));
            request_.inputs.push_back({at(t).data(), desc(t), layout(t)});
        }
        for (int o = 0; o < problem_.outputs; ++o) {
            const int t = problem_.inputs + o;
            at(t).poison();
            request_.outputs.push_back({at(o == output ? input : t).data(), desc(t), layout(t)});
        }
        workspace_.poison();
        implementation_->prepare(request_, context_)->run(step);
        std::vector<Tensor> result;
        for (int o = 0; o < problem_.outputs; ++o) {
            const int t = problem_.inputs + o;
            result.push_back(taken(desc(t), offsets_[static_cast<size_t>(t)], at(o == output ? input : t)));
        }
        EXPECT_TRUE(workspace_.intact()) << "workspace of " << candidate_.workspace_bytes;
        for (const auto& m : memory_) EXPECT_TRUE(m.intact());
        return result;
    }

  private:
    const TensorDesc& desc(int t) const { return problem_.tensors[static_cast<size_t>(t)]; }
    const Layout& layout(int t) const {
        return t < problem_.inputs ? candidate_.inputs[static_cast<size_t>(t)]
                                   : candidate_.outputs[static_cast<size_t>(t - problem_.inputs)];
    }
    GuardedMemory& at(int t) { return memory_[static_cast<size_t>(t)]; }

    const Problem& problem_;
    const Candidate& candidate_;
    const std::vector<Tensor>& inputs_;
    GuardedMemory workspace_;
    std::vector<GuardedMemory> memory_;
    std::vector<std::vector<int64_t>> offsets_;
    KernelRequest request_;
    const Implementation* implementation_;
    CpuContext context_;
};

inline void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& expected, double tolerance, double usual = 0) {
    for (size_t i = 0; i < found.size(); ++i) {
        const bool exact = !is_floating(found[i].dtype());
        EXPECT_LE(distance(found[i], expected[i], usual), exact ? 0 : tolerance) << "output " << i;
    }
}

// Runs the problem by every candidate, apart and in place.
inline void expect_agreement(const Implementation& implementation, const Problem& problem, const std::vector<Tensor>& inputs,
                             const Check& check = {}) {
    ASSERT_EQ(static_cast<int>(inputs.size()), problem.inputs);
    const auto expected = reference_outputs(problem, inputs, check.context);
    for (const auto& context : check.contexts()) {
        int tried = 0;
        for (const auto& offered : implementation.candidates(problem, context))
            for (const auto& candidate : resolved(problem, offered, context.block)) {
                std::string trace = text_of(problem) + fmt::format(", {} threads, blocks of {}:", context.threads, context.block);
                for (int t = 0; t < problem.inputs; ++t)
                    trace += " " + to_string(shape_of(problem, t)) + " " + candidate.inputs[static_cast<size_t>(t)].text();
                SCOPED_TRACE(trace);
                EXPECT_EQ(candidate.algorithm.substr(0, candidate.algorithm.find(':')), implementation.name());
                EXPECT_GT(candidate.seconds, 0);
                CandidateRun run(implementation, problem, candidate, context, inputs);
                const auto found = run(check.context);
                expect_close(found, expected, check.tolerance, check.usual);
                EXPECT_EQ(run(check.context), found) << "not the same bits again";
                for (const auto& [output, input] : candidate.in_place) {
                    SCOPED_TRACE(fmt::format("output {} in the place of input {}", output, input));
                    EXPECT_EQ(run(check.context, output, input), found);
                }
                ++tried;
                if (::testing::Test::HasFailure()) return;
            }
        EXPECT_GT(tried, 0) << "nothing was offered for " << text_of(problem);
    }
}

// One instruction set of those that this machine has; by the number of a case, so that all of them are tried.
inline const vec::VectorKernels& some_kernels(int number) {
    const auto tables = vec::vector_kernel_tables();
    return *tables.tables[number % tables.count];
}

// An activation [N, C, ..]; every fourth is large enough for several threads.
inline Shape draw_activation(Draw& draw, int number, int least_rank = 2) {
    const int rank = static_cast<int>(draw.between(least_rank, 5));
    const bool large = number % 4 == 3;
    const Dims space = rank == 2 ? Dims{} : draw.dims(rank - 2, 1, rank == 3 ? 40 : rank == 4 ? 9 : 4);
    int64_t n = draw.between(1, 4);
    const int64_t channels = draw.between(1, draw.coin() ? 40 : 130);
    if (large) n = std::min<int64_t>(3 * 8192 / (channels * numel(space)) + 1, 200);
    return join(Dims{n, channels}, space);
}

inline void fill(Tensor& tensor, const std::function<double(int64_t)>& value) {
    for (int64_t i = 0; i < tensor.numel(); ++i) tensor.as<double>()[static_cast<size_t>(i)] = value(i);
}

}  // namespace convoy::cpu::testing
