// A search where not only the plan is open: several numbers of ranks, batches and micro-batches, of which the objective chooses. And, where a request
// cannot be met, what is nearest to it that can.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/search.h"

namespace convoy {

// The training graph of a batch that is computed in so many micro-batches. Error when the batch has fewer samples.
using MakeGraph = std::function<Graph(int64_t batch, int micro_batches)>;

struct SearchCase {
    int64_t batch = 1;
    int micro_batches = 1;
    int ranks = 1;
};

struct CaseResult {
    SearchCase what;
    SearchResult search;  // when there is no failure
    double score = 0;     // in the objective's unit; smaller is better
    std::string failure;
    bool possible() const { return failure.empty(); }
};

struct FreeSearch {
    std::vector<int64_t> batches{1};
    std::vector<int> micro_batches{1}, ranks{1};
    SearchOptions options;  // its ranks are not read
};

// All cases, in the order of the lists; `best` is the index of the one with the best score. With several batches the objective Time means the time of
// a sample. Error says why when no case is possible, and what would be.
struct FreeResult {
    std::vector<CaseResult> cases;
    size_t best = 0;
};
FreeResult search_cases(const FreeSearch& request, const MakeGraph& make, const Machine& machine, const Target& target);

// The largest smaller and the smallest larger number of ranks that a batch can be shared by without awkward factors; empty: there is none.
std::vector<int> nearby_counts(int ranks, int64_t batch, int64_t most);

// How much of the ranks' number a plan makes use of, weighed by the work of the layers: 1 when every layer is split by all.
double useful_share(const SearchSpace& space, const Plan& plan);

}  // namespace convoy
