// The training graph as the search sees it. Forward ops in order; those with weights are free to choose a label for every axis of a grid, all others
// follow their inputs, as they do in the compiler. Gradients belong to the op whose gradients they are. What stays open between two ops (the
// activations that later ones read) is what a dynamic program has to remember.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.h"
#include "program/signature.h"

namespace convoy {

constexpr int kMostAxes = 4;
constexpr int16_t kWhole = -1, kSum = -2;  // beside the number of a dim: replicated along an axis; a sum not yet reduced

// How an activation lies on a grid: for each axis a dim that is split, kWhole or kSum. Axes that a grid lacks are kWhole.
struct Spread {
    std::array<int16_t, kMostAxes> at{kWhole, kWhole, kWhole, kWhole};
    int16_t& operator[](int axis) { return at[static_cast<size_t>(axis)]; }
    int16_t operator[](int axis) const { return at[static_cast<size_t>(axis)]; }
    uint32_t key() const {
        uint32_t k = 0;
        for (const int16_t v : at) k = k << 8 | static_cast<uint8_t>(v);
        return k;
    }
    bool operator==(const Spread&) const = default;
};

// An op with its types and labels.
struct LabelledOp {
    NodeId node = kNone;
    Op op;
    std::vector<ValueType> inputs, outputs;
    Signature signature;
    int label_named(const std::string& name) const;  // kNone: there is none
};

struct SearchParameter {
    ValueId value = kNone;
    size_t operand = 0;  // of the op that reads it first
    LabelledOp update;   // node kNone: it is not learned
    int slots = 0;       // tensors of the optimizer beside it
    bool learned() const { return update.node != kNone; }
};

struct SearchOp {
    LabelledOp forward;
    bool free = false;  // has weights in the sense of a plan
    std::string layer;
    struct Read {
        size_t operand = 0;
        ValueId value = kNone;
        bool gradient = false;  // its gradient is made
        bool given = false;     // an input of the graph, which every rank is fed as it likes
    };
    std::vector<Read> reads;  // activations only
    ValueId made = kNone;     // the activation that it makes
    bool statistics = false;  // makes statistics that ranks merge
    bool keeps = false;       // its result takes memory of its own until the backward pass
    std::vector<LabelledOp> backward;
    std::vector<SearchParameter> parameters;
    std::vector<ValueId> open;  // activations made so far that later ops read, in ascending order, once this op is done
};

struct SearchSpace {
    const Graph* graph = nullptr;
    std::vector<SearchOp> ops;
    int micro_batches = 1;
    size_t free_ops() const;
};

// `graph` is a training graph and must outlive the result.
SearchSpace search_space(const Graph& graph);

}  // namespace convoy
