#include "plan/search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "plan/search_dp.h"
#include "plan/simulate.h"
#include "plan/sizes.h"
#include "program/plan_spec.h"

namespace convoy {

namespace {

constexpr double kHopeless = 1.5;  // known ways that are estimated to take so many times the best are not simulated where that is slow
constexpr double kNear = 1.3;      // a shape of grid whose first plan takes longer than so many times the best gets no second look
constexpr int kManyRanks = 32;     // from which on simulating takes noticeable time

// One way to share the work, before it is simulated.
struct Way {
    std::string name;
    Plan plan;
    double estimate = 0, memory = 0;  // seconds; bytes
    bool known = false;               // a preset or a word of plan_spec
};

int spatial_dims(const SearchSpace& space) {
    for (const SearchOp& op : space.ops)
        if (op.free && op.forward.inputs[0].shape.size() > 2) return op.forward.inputs[0].shape.size() - 2;
    return 0;
}

class Searching {
  public:
    Searching(const Graph& graph, const Machine& machine, const Target& target, const SearchOptions& options)
        : graph_(graph),
          machine_(machine),
          target_(target),
          options_(options),
          space_(search_space(graph)),
          cost_(machine, {options.ranks, options.threads}),
          kernels_(cost_, target, options.dtype) {
        kernels_.global_norm = options.global_norm;
        result_.memory_limit = options.memory;
        if (options.memory == 0)
            for (Rank r = 0; r < options.ranks; ++r) {
                const int64_t has = memory_of(r);
                if (has > 0 && (result_.memory_limit == 0 || has < result_.memory_limit)) result_.memory_limit = has;
            }
    }

    SearchResult run() {
        add_known();
        add_found();
        require_useful();
        simulate_all();
        if (options_.explain && result_.best.failure.empty()) explain();
        return std::move(result_);
    }

  private:
    int64_t memory_of(Rank r) const { return cost_.device(r).memory_bytes * cost_.threads(r); }

    // --- Ways ---

    void add_known() {
        if (options_.ranks == 1) {
            add({.name = "one rank", .plan = Plan::single(), .known = true});
            return;
        }
        std::vector<std::string> specs{"data", "zero", "hybrid-fc", "spatial"};
        const int rank = spatial_dims(space_);
        for (int i = 0; i < rank; ++i) specs.push_back(fmt::format("{}:{}", spatial_name(i, rank), options_.ranks));
        for (const char method : {'x', 'y'}) specs.push_back(fmt::format("channel:{}@{}", options_.ranks, method));
        for (const std::string& spec : specs) add({.name = spec, .plan = plan_from_spec(spec, options_.ranks, graph_).plan, .known = true});
    }

    void add(Way way) {
        for (LayerPlan& entry : way.plan.layers) entry.global_norm = options_.global_norm;
        for (const Way& other : ways_)
            if (other.plan.layers == way.plan.layers && other.plan.grids.size() == way.plan.grids.size() &&
                same_shape(other.plan, way.plan))
                return;
        if (auto chosen = choices_of(space_, way.plan); chosen && way.estimate == 0) {
            GridCosts costs(space_, way.plan.grids[0], kernels_);
            const StepCost cost = costs.evaluate(*chosen);
            way.estimate = step_seconds(cost);
            way.memory = cost.memory;
        }
        ways_.push_back(std::move(way));
    }
    static bool same_shape(const Plan& a, const Plan& b) {
        for (size_t g = 0; g < a.grids.size(); ++g) {
            if (a.grids[g].axes.size() != b.grids[g].axes.size()) return false;
            for (size_t x = 0; x < a.grids[g].axes.size(); ++x)
                if (a.grids[g].axes[x].size != b.grids[g].axes[x].size) return false;
        }
        return true;
    }

    void add_found() {
        if (options_.ranks == 1) return;
        double least = 0;
        for (const Grid& grid : search_grids(options_.ranks)) {
            ++result_.grids;
            GridCosts costs(space_, grid, kernels_);
            DpLimits limits;
            if (grid.axes.size() > 2) limits = {.choices = 32, .states = 400};
            const auto found = [&](const SearchWeights& weights) {
                const Assignment best = best_assignment(space_, costs, weights, limits);
                result_.exact = result_.exact && best.exact;
                const Plan plan = plan_of(space_, grid, best.chosen);
                const bool whole = std::all_of(best.chosen.begin(), best.chosen.end(), [](const Choice& c) {
                    return std::all_of(c.label.begin(), c.label.end(), [](int label) { return label < 0; });
                });
                add({.name = whole ? std::string(kUnsplit) : fmt::format("found on {}", to_string(plan.grids[0])),
                     .plan = plan,
                     .estimate = step_seconds(best.cost),
                     .memory = best.cost.memory});
                return best.cost;
            };
            const StepCost plain = found({.gradient = 1});
            // Where most gradients hide behind the backward pass, they should not decide.
            const double seconds = step_seconds(plain);
            least = least == 0 ? seconds : std::min(least, seconds);
            if (plain.gradient > 0.02 * plain.waits() && seconds < kNear * least) found({.gradient = 0.1});
            const auto limit = static_cast<double>(result_.memory_limit);
            double price = step_seconds(plain) / std::max(limit, 1.0);
            for (int i = 0; limit > 0 && plain.memory > 0.9 * limit && i < 3; ++i, price *= 6)
                if (found({.gradient = 1, .memory = price}).memory < 0.7 * limit) break;
        }
    }

    // An axis that splits nothing in any layer leaves its ranks without work of their own.
    void require_useful() const {
        if (options_.ranks == 1) return;
        const auto idle = [&](const Way& way) {
            const auto chosen = choices_of(space_, way.plan);
            if (!chosen) return false;
            for (size_t a = 0; a < way.plan.grids[0].axes.size(); ++a) {
                bool splits = false;
                for (const Choice& c : *chosen) splits = splits || c.label[a] >= 0;
                if (!splits) return true;
            }
            return false;
        };
        if (!std::all_of(ways_.begin(), ways_.end(), idle)) return;
        fail(
            "{} ranks cannot share this model: no layer has {} samples, rows, channels or filters, and {} has no factors to split several "
            "of them by",
            options_.ranks, options_.ranks, options_.ranks);
    }

    // --- Scores ---

    ScoredPlan simulated(const Way& way) const {
        ScoredPlan plan{.name = way.name, .plan = way.plan, .estimate = way.estimate};
        try {
            const auto classes = compile_classes(graph_, way.plan, target_, {.dtype = options_.dtype});
            const Simulation s = simulate(classes, machine_, {.threads = options_.threads});
            plan.simulated = true;
            plan.seconds = s.step_seconds;
            plan.compute_seconds = s.slowest().compute_seconds;
            plan.waiting_seconds = s.slowest().waiting_seconds;
            plan.joules = s.joules;
            plan.memory = s.most_memory();
            plan.activation_sent = s.slowest().activation_sent;
            plan.gradient_sent = s.slowest().gradient_sent;
            plan.fits = result_.memory_limit == 0 || plan.memory <= result_.memory_limit;
            if (!plan.fits) plan.failure = fmt::format("needs {}", size_text(plan.memory));
        } catch (const Error& error) {
            plan.failure = error.what();
        }
        return plan;
    }

    double score_of(const ScoredPlan& plan) const { return score(plan, options_.objective, machine_, options_.ranks, 1); }

    void simulate_all() {
        // Those that seem to fit first, fastest first; then by memory.
        const auto limit = static_cast<double>(result_.memory_limit);
        std::stable_sort(ways_.begin(), ways_.end(), [&](const Way& a, const Way& b) {
            const bool fa = limit == 0 || a.memory <= limit, fb = limit == 0 || b.memory <= limit;
            if (fa != fb) return fa;
            return fa ? a.estimate < b.estimate : a.memory < b.memory;
        });
        double least = 0;
        for (const Way& way : ways_)
            if (way.estimate > 0 && (least == 0 || way.estimate < least)) least = way.estimate;
        const int finalists = options_.ranks > kManyRanks ? std::min(3, options_.finalists) : options_.finalists;
        int found = 0;
        std::vector<Way> later;
        for (const Way& way : ways_) {
            const bool data = way.name == "data";
            const bool hopeless = options_.ranks > kManyRanks && !data && way.known && way.estimate > kHopeless * least;
            if (!hopeless && (way.known || found < finalists)) {
                found += way.known ? 0 : 1;
                take(simulated(way));
            } else {
                later.push_back(way);
            }
        }
        // When none of those fits, the smallest of the others may.
        std::stable_sort(later.begin(), later.end(), [](const Way& a, const Way& b) { return a.memory < b.memory; });
        const auto any = [&] {
            return std::any_of(result_.plans.begin(), result_.plans.end(), [](const ScoredPlan& p) { return p.fits; });
        };
        for (size_t i = 0; i < later.size() && i < 6 && !any(); ++i) take(simulated(later[i]));
        std::stable_sort(result_.plans.begin(), result_.plans.end(), [&](const ScoredPlan& a, const ScoredPlan& b) {
            if (a.fits != b.fits) return a.fits;
            if (!a.fits) return a.simulated != b.simulated ? a.simulated : a.memory < b.memory;
            return score_of(a) < score_of(b);
        });
        CONVOY_CHECK(!result_.plans.empty(), "a search without a single plan");
        result_.best = result_.plans[0];
        require(result_.best.simulated, "no plan for {} ranks can be compiled: {}", options_.ranks, result_.best.failure);
    }
    void take(ScoredPlan plan) {
        if (plan.name == "data") result_.data = plan;
        result_.plans.push_back(std::move(plan));
    }

    // --- Reasons ---

    void explain() {
        auto chosen = choices_of(space_, result_.best.plan);
        if (!chosen) return;
        const Grid& grid = result_.best.plan.grids[0];
        GridCosts costs(space_, grid, kernels_);
        std::vector<StepCost> each, data;
        const double total = step_seconds(costs.evaluate(*chosen, &each));
        if (options_.ranks > 1) {
            const Plan by_samples = plan_from_spec("data", options_.ranks, graph_).plan;
            auto all = choices_of(space_, by_samples);
            GridCosts data_costs(space_, by_samples.grids[0], kernels_);
            if (all) data_costs.evaluate(*all, &data);
        }
        for (size_t i = 0; i < space_.ops.size(); ++i) {
            if (!space_.ops[i].free) continue;
            LayerChoice layer{.layer = space_.ops[i].layer, .choice = words_of(space_.ops[i], (*chosen)[i], grid)};
            layer.cost = each[i];
            if (!data.empty()) layer.data_seconds = data[i].waits() + data[i].gradient;
            find_next(i, *chosen, total, costs, layer);
            const StepCost& c = layer.cost;
            const double most = std::max({c.compute, c.transfer, c.latency, c.gradient});
            layer.limit = most == c.compute ? "compute" : most == c.transfer ? "bandwidth" : most == c.latency ? "latency" : "gradients";
            if (layer.next_extra < -1e-9) layer.limit = "memory";
            result_.layers.push_back(std::move(layer));
        }
    }

    // The best other choice for one layer, all others as they are.
    void find_next(size_t op, const std::vector<Choice>& chosen, double total, GridCosts& costs, LayerChoice& layer) {
        std::vector<std::pair<double, Choice>> others;
        for (const Choice& c : costs.choices(op))
            if (c.label != chosen[op].label) others.emplace_back(costs.cost(op, c).waits() + costs.cost(op, c).gradient, c);
        std::sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        if (others.size() > 10) others.resize(10);
        bool any = false;
        for (const auto& [own, choice] : others) {
            std::vector<Choice> with = chosen;
            with[op] = choice;
            const double extra = step_seconds(costs.evaluate(with)) - total;
            if (any && extra >= layer.next_extra) continue;
            any = true;
            layer.next_extra = extra;
            layer.next = words_of(space_.ops[op], choice, costs.grid());
        }
    }

    const Graph& graph_;
    const Machine& machine_;
    const Target& target_;
    const SearchOptions options_;
    SearchSpace space_;
    CostModel cost_;
    LocalKernels kernels_;
    std::vector<Way> ways_;
    SearchResult result_;
};

}  // namespace

std::string_view name_of(Objective objective) {
    static constexpr std::string_view names[] = {"time", "samples", "cost", "energy"};
    return names[static_cast<size_t>(objective)];
}

double score(const ScoredPlan& plan, Objective objective, const Machine& machine, int ranks, int64_t batch) {
    const auto samples = static_cast<double>(batch);
    switch (objective) {
        case Objective::Time: return plan.seconds;
        case Objective::Samples: return plan.seconds / samples;
        case Objective::Cost: return plan.seconds * price_per_second(machine, ranks) / samples;
        case Objective::Energy: return plan.joules / samples;
    }
    return plan.seconds;
}

SearchResult search_plan(const Graph& graph, const Machine& machine, const Target& target, const SearchOptions& options) {
    if (options.objective == Objective::Cost)
        require(price_per_second(machine, options.ranks) > 0,
                "machine \"{}\" has no price, so a plan cannot be found by cost; give its nodes a \"price_per_hour\"", machine.name);
    if (options.objective == Objective::Energy)
        require(
            std::any_of(machine.devices.begin(), machine.devices.end(), [](const DeviceKind& d) { return d.busy_watts > 0; }),
            "machine \"{}\" says nothing of power, so a plan cannot be found by energy; give its devices \"idle_watts\" and \"busy_watts\"",
            machine.name);
    return Searching(graph, machine, target, options).run();
}

}  // namespace convoy
