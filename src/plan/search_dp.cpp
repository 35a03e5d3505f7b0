#include "plan/search_dp.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace convoy {

namespace {

using Key = std::vector<uint32_t>;  // of the open activations, in their order

struct KeyHash {
    size_t operator()(const Key& key) const {
        uint64_t h = 1469598103934665603ULL;
        for (const uint32_t v : key) h = (h ^ v) * 1099511628211ULL;
        return static_cast<size_t>(h);
    }
};

struct State {
    std::vector<Spread> open;
    double cost = 0;
    int parent = 0;
    Choice choice;
};

bool cheaper(const State& a, const State& b) { return a.cost < b.cost; }

// The cheapest way found to each arrangement of the activations that are open after an op.
class Arrivals {
  public:
    // `from`: where each open activation stood before; kNone: what the op makes.
    explicit Arrivals(std::vector<int> from) : from_(std::move(from)) {}

    void add(int parent, const State& state, const Choice& choice, double cost) {
        const auto lies = [&](int f) -> const Spread& { return f == kNone ? choice.out : state.open[static_cast<size_t>(f)]; };
        Key key;
        for (const int f : from_) key.push_back(lies(f).key());
        const auto [at, added] = index_.emplace(std::move(key), static_cast<int>(states_.size()));
        if (!added && states_[static_cast<size_t>(at->second)].cost <= cost) return;
        if (added) states_.emplace_back();
        State& to = states_[static_cast<size_t>(at->second)];
        to.open.clear();
        for (const int f : from_) to.open.push_back(lies(f));
        to.cost = cost;
        to.parent = parent;
        to.choice = choice;
    }
    std::vector<State> take() { return std::move(states_); }

  private:
    std::vector<int> from_;
    std::unordered_map<Key, int, KeyHash> index_;
    std::vector<State> states_;
};

class Frontier {
  public:
    Frontier(const SearchSpace& space, GridCosts& costs, const SearchWeights& weights, const DpLimits& limits)
        : space_(space), costs_(costs), weights_(weights), limits_(limits) {}

    Assignment run() {
        std::vector<State> states{State{}};
        std::vector<std::vector<std::pair<int, Choice>>> steps;  // by op and state: where from, and by which choice
        for (size_t i = 0; i < space_.ops.size(); ++i) {
            states = advance(i, states);
            std::vector<std::pair<int, Choice>> back;
            for (const State& s : states) back.emplace_back(s.parent, s.choice);
            steps.push_back(std::move(back));
        }
        Assignment result{.chosen = std::vector<Choice>(space_.ops.size()), .cost = {}, .exact = exact_};
        const auto best = std::min_element(states.begin(), states.end(), cheaper);
        int at = static_cast<int>(best - states.begin());
        for (size_t i = steps.size(); i-- > 0;) {
            result.chosen[i] = steps[i][static_cast<size_t>(at)].second;
            at = steps[i][static_cast<size_t>(at)].first;
        }
        result.cost = costs_.evaluate(result.chosen);
        return result;
    }

  private:
    std::vector<Choice> choices(size_t i) {
        std::vector<Choice> all = costs_.choices(i);
        if (all.size() <= limits_.choices) return all;
        exact_ = false;
        std::vector<std::pair<double, size_t>> order;
        for (size_t c = 0; c < all.size(); ++c) order.emplace_back(weights_.of(costs_.cost(i, all[c])), c);
        std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(limits_.choices), order.end());
        std::vector<Choice> kept;
        for (size_t c = 0; c < limits_.choices; ++c) kept.push_back(all[order[c].second]);
        return kept;
    }

    std::vector<State> advance(size_t i, const std::vector<State>& before) {
        const SearchOp& op = space_.ops[i];
        const std::vector<ValueId> open_before = i == 0 ? std::vector<ValueId>{} : space_.ops[i - 1].open;
        std::vector<int> from;
        for (const ValueId v : op.open) from.push_back(v == op.made ? kNone : position(open_before, v));
        std::vector<int> reads;
        for (const auto& r : op.reads) reads.push_back(r.given ? kNone : position(open_before, r.value));
        const std::vector<Choice> free = op.free ? choices(i) : std::vector<Choice>{};
        std::vector<double> own;
        for (const Choice& c : free) own.push_back(weights_.of(costs_.cost(i, c)));

        Arrivals arrivals(std::move(from));
        // What reads cost depends on how the read activations lie, which many states share.
        std::unordered_map<Key, std::vector<double>, KeyHash> known;
        for (size_t s = 0; s < before.size(); ++s) {
            const State& state = before[s];
            std::vector<Spread> lies;
            Key key;
            for (const int r : reads) {
                lies.push_back(r == kNone ? Spread{} : state.open[static_cast<size_t>(r)]);
                key.push_back(lies.back().key());
            }
            const auto read_cost = [&](const Choice& c) {
                double sum = 0;
                for (size_t r = 0; r < lies.size(); ++r) sum += weights_.of(costs_.read(i, op.reads[r], lies[r], c));
                return sum;
            };
            if (!op.free) {
                const Choice c = costs_.follow(i, lies);
                arrivals.add(static_cast<int>(s), state, c, state.cost + weights_.of(costs_.cost(i, c)) + read_cost(c));
                continue;
            }
            auto at = known.find(key);
            if (at == known.end()) {
                std::vector<double> costs;
                for (size_t c = 0; c < free.size(); ++c) costs.push_back(own[c] + read_cost(free[c]));
                at = known.emplace(std::move(key), std::move(costs)).first;
            }
            for (size_t c = 0; c < free.size(); ++c) arrivals.add(static_cast<int>(s), state, free[c], state.cost + at->second[c]);
        }
        return cheapest(arrivals.take());
    }

    std::vector<State> cheapest(std::vector<State> states) {
        if (states.size() <= limits_.states) return states;
        exact_ = false;
        std::nth_element(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(limits_.states), states.end(), cheaper);
        states.resize(limits_.states);
        return states;
    }

    static int position(const std::vector<ValueId>& list, ValueId v) {
        const auto at = std::find(list.begin(), list.end(), v);
        CONVOY_CHECK(at != list.end(), "value {} is read but not open", v);
        return static_cast<int>(at - list.begin());
    }

    const SearchSpace& space_;
    GridCosts& costs_;
    const SearchWeights& weights_;
    const DpLimits& limits_;
    bool exact_ = true;
};

}  // namespace

Assignment best_assignment(const SearchSpace& space, GridCosts& costs, const SearchWeights& weights, const DpLimits& limits) {
    return Frontier(space, costs, weights, limits).run();
}

Assignment best_by_trying_all(const SearchSpace& space, GridCosts& costs, const SearchWeights& weights) {
    std::vector<std::vector<Choice>> options;
    double combinations = 1;
    for (size_t i = 0; i < space.ops.size(); ++i) {
        options.push_back(space.ops[i].free ? costs.choices(i) : std::vector<Choice>{Choice{}});
        combinations *= static_cast<double>(options.back().size());
    }
    require(combinations < 5e6, "{} combinations are too many to try all", combinations);
    std::vector<size_t> at(options.size(), 0);
    Assignment best;
    double least = std::numeric_limits<double>::infinity();
    while (true) {
        std::vector<Choice> chosen;
        for (size_t i = 0; i < at.size(); ++i) chosen.push_back(options[i][at[i]]);
        const StepCost cost = costs.evaluate(chosen);
        if (weights.of(cost) < least) {
            least = weights.of(cost);
            best = {std::move(chosen), cost, true};
        }
        size_t i = 0;
        while (i < at.size() && ++at[i] == options[i].size()) at[i++] = 0;
        if (i == at.size()) return best;
    }
}

}  // namespace convoy
