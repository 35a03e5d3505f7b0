// Choosing among few options for each of many variables, where the options cost something themselves and what is made in one form and used in another must be
// copied. The compiler's choice of algorithms and layouts in the abstract: a variable is an instruction (its options: candidates) or a state (layouts), a value
// is a tensor, its forms are layouts.
//
// Method. Where the links between variables form a tree, as in a chain of layers, the best choice is found exactly, by dynamic programming from the leaves to
// the root. Otherwise a spanning tree of the costliest links is solved so while the other ends of all other links stay as they are; the result is taken
// when it really costs less, other links get their turn in the next tree, and so on until several trees in a row have changed nothing. Last, variables are changed one by
// one until no single change helps. No step makes things worse, and nothing depends on timing or addresses.
#pragma once

#include <vector>

namespace convoy {

struct ChoiceGraph {
    struct Use {
        int variable = 0;
        std::vector<int> forms;  // of the value, by the variable's option
    };
    struct Value {
        Use made;
        std::vector<Use> uses;
        int form_count = 0;
        std::vector<double> copies;  // [made form * form_count + used form]: seconds; a form that several use is made once
    };
    std::vector<std::vector<double>> variables;  // the seconds of each option
    std::vector<Value> values;
};

// The seconds of all together when each variable has this option.
double seconds_of(const ChoiceGraph& graph, const std::vector<int>& options);

// Options that cost no more than `start`, and less where the method finds any.
std::vector<int> improved(const ChoiceGraph& graph, std::vector<int> start);

}  // namespace convoy
