// Random problems for every op, and for the patterns that backends do in one pass: what a backend is tested with. Inputs are float64 (or indices); a
// test rounds them to whatever its program stores.
#pragma once

#include <string>
#include <vector>

#include "kernels/problem_testing.h"
#include "model/op.h"

namespace convoy::op_testing {

// One step after the other over named values, as in a graph: elements instead of types.
struct OpCase {
    struct Step {
        Op op;
        std::vector<int> inputs, outputs;  // numbers of values
    };
    std::vector<ValueType> values;  // first the inputs
    std::vector<Tensor> inputs;
    std::vector<Step> steps;
    std::vector<int> outputs;  // values that are wanted; others stay inside

    int input(Element element, Tensor tensor);
    // Adds a step and returns its first output; the others follow.
    int step(const Op& op, std::vector<int> from);
    // As a problem that is stored as the target says.
    Problem problem(const Target& target, DType compute) const;
    // The same with some inputs real that are precise as a rule, or the other way round, as graphs have them that come from other tools: a stored parameter
    // times an activation, the gradient of a parameter that was used as an activation. What asks for the sign or the largest of numbers stays as it is,
    // because rounding turns that over, and so do states.
    OpCase mixed(Draw& draw) const;
};

struct NamedCase {
    std::string name;
    OpCase (*draw)(Draw& draw);
    int full_count = 500;  // cases of a full test; fewer of what is large
};
// At least one for every op.
std::vector<NamedCase> op_cases();
// Several ops in one problem; a backend may offer no candidate for one.
std::vector<NamedCase> pattern_cases();

}  // namespace convoy::op_testing
