#include "program/choice.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"

namespace convoy {

namespace {

constexpr double kEqual = 1e-9;  // differences below this share are none

using Value = ChoiceGraph::Value;
using Use = ChoiceGraph::Use;

// All ways in which two variables meet: one makes a value that the other uses.
struct Edge {
    int a = 0, b = 0;
    double weight = 0;                         // the most that can depend on it
    std::vector<std::pair<int, int>> meeting;  // value, number of the use
    int turns = 0;                             // trees that it was part of
};

class Improving {
  public:
    Improving(const ChoiceGraph& graph, std::vector<int> start)
        : graph_(graph), options_(std::move(start)), touching_(graph.variables.size()), in_tree_(graph.values.size()) {
        std::map<std::pair<int, int>, Edge> edges;
        for (size_t v = 0; v < graph.values.size(); ++v) {
            const Value& value = graph.values[v];
            in_tree_[v].assign(value.uses.size(), false);
            touch(value.made.variable, v);
            const double most = *std::max_element(value.copies.begin(), value.copies.end());
            for (size_t u = 0; u < value.uses.size(); ++u) {
                const int from = value.made.variable, to = value.uses[u].variable;
                touch(to, v);
                if (from == to || most == 0 || single(from) || single(to)) continue;
                Edge& edge = edges[std::minmax(from, to)];
                std::tie(edge.a, edge.b) = std::minmax(from, to);
                edge.weight += most;
                edge.meeting.emplace_back(static_cast<int>(v), static_cast<int>(u));
            }
        }
        for (auto& entry : edges) edges_.push_back(std::move(entry.second));
    }

    std::vector<int> run() {
        double seconds = seconds_of(graph_, options_);
        constexpr int kIdle = 3, kMost = 24;
        for (int turn = 0, idle = 0; turn < kMost && idle < kIdle && !edges_.empty(); ++turn) {
            std::vector<int> found = solve_tree();
            const double now = seconds_of(graph_, found);
            idle = now < seconds * (1 - kEqual) ? 0 : idle + 1;
            if (idle > 0) continue;
            seconds = now;
            options_ = std::move(found);
        }
        while (change_singly()) {
        }
        return options_;
    }

  private:
    bool single(int variable) const { return graph_.variables[static_cast<size_t>(variable)].size() == 1; }
    void touch(int variable, size_t value) {
        auto& list = touching_[static_cast<size_t>(variable)];
        if (list.empty() || list.back() != value) list.push_back(value);
    }
    int form(const Use& use) const { return use.forms[static_cast<size_t>(options_[static_cast<size_t>(use.variable)])]; }
    static double copy(const Value& value, int made, int used) { return value.copies[static_cast<size_t>(made * value.form_count + used)]; }

    // Whether a use outside the tree has this form now, other than use `but`.
    bool made_anyway(size_t v, int used, size_t but = SIZE_MAX) const {
        const Value& value = graph_.values[v];
        for (size_t u = 0; u < value.uses.size(); ++u)
            if (u != but && !in_tree_[v][u] && form(value.uses[u]) == used) return true;
        return false;
    }

    // A spanning forest, the costliest links first among those that had the fewest turns; as edges of each variable.
    std::vector<std::vector<const Edge*>> spanning() {
        std::vector<size_t> order(edges_.size());
        std::iota(order.begin(), order.end(), size_t{0});
        const auto rank = [&](size_t e) { return edges_[e].weight / (1 + edges_[e].turns); };
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) > rank(b); });
        std::vector<int> root(graph_.variables.size());
        std::iota(root.begin(), root.end(), 0);
        const auto find = [&](int v) {
            while (root[static_cast<size_t>(v)] != v)
                v = root[static_cast<size_t>(v)] = root[static_cast<size_t>(root[static_cast<size_t>(v)])];
            return v;
        };
        std::vector<std::vector<const Edge*>> tree(graph_.variables.size());
        for (auto& flags : in_tree_) std::fill(flags.begin(), flags.end(), false);
        for (const size_t e : order) {
            Edge& edge = edges_[e];
            const int a = find(edge.a), b = find(edge.b);
            if (a == b) continue;
            root[static_cast<size_t>(a)] = b;
            ++edge.turns;
            tree[static_cast<size_t>(edge.a)].push_back(&edge);
            tree[static_cast<size_t>(edge.b)].push_back(&edge);
            for (const auto& [v, u] : edge.meeting) in_tree_[static_cast<size_t>(v)][static_cast<size_t>(u)] = true;
        }
        return tree;
    }

    // What each option costs by itself and with the other ends of all links outside the tree as they are.
    std::vector<std::vector<double>> alone() const {
        auto cost = graph_.variables;
        for (size_t v = 0; v < graph_.values.size(); ++v) {
            const Value& value = graph_.values[v];
            auto& maker = cost[static_cast<size_t>(value.made.variable)];
            for (size_t u = 0; u < value.uses.size(); ++u) {
                if (in_tree_[v][u]) continue;
                const Use& use = value.uses[u];
                auto& user = cost[static_cast<size_t>(use.variable)];
                bool repeated = false;
                for (size_t w = 0; w < u; ++w) repeated = repeated || (!in_tree_[v][w] && form(value.uses[w]) == form(use));
                for (size_t o = 0; o < maker.size() && !repeated; ++o) maker[o] += copy(value, value.made.forms[o], form(use));
                if (use.variable == value.made.variable) continue;
                for (size_t o = 0; o < user.size(); ++o)
                    if (!made_anyway(v, use.forms[o], u)) user[o] += copy(value, form(value.made), use.forms[o]);
            }
        }
        return cost;
    }

    // What two options of the ends of an edge cost together: a table by the forms of every value between them.
    struct Between {
        struct Part {
            const std::vector<int>*made, *used;  // forms, by option
            bool a_makes;
            int form_count;
            std::vector<double> seconds;
        };
        std::vector<Part> parts;

        double operator()(size_t a, size_t b) const {
            double sum = 0;
            for (const Part& p : parts)
                sum += p.seconds[static_cast<size_t>((*p.made)[p.a_makes ? a : b] * p.form_count + (*p.used)[p.a_makes ? b : a])];
            return sum;
        }
    };

    Between between(const Edge& edge) const {
        Between result;
        for (const auto& [v, u] : edge.meeting) {
            const Value& value = graph_.values[static_cast<size_t>(v)];
            const Use& use = value.uses[static_cast<size_t>(u)];
            Between::Part part{&value.made.forms, &use.forms, value.made.variable == edge.a, value.form_count, value.copies};
            for (int used = 0; used < value.form_count; ++used)
                if (made_anyway(static_cast<size_t>(v), used))
                    for (int made = 0; made < value.form_count; ++made)
                        part.seconds[static_cast<size_t>(made * value.form_count + used)] = 0;
            result.parts.push_back(std::move(part));
        }
        return result;
    }

    // A variable of the forest, and the edge to the one above it; none for a root.
    struct Visit {
        int variable;
        const Edge* up;
        int parent() const { return up->a == variable ? up->b : up->a; }
    };

    // All variables, each after the one above it.
    std::vector<Visit> from_the_roots(const std::vector<std::vector<const Edge*>>& tree) const {
        std::vector<Visit> order;
        std::vector<bool> seen(graph_.variables.size(), false);
        for (size_t root = 0; root < seen.size(); ++root) {
            if (seen[root]) continue;
            seen[root] = true;
            order.push_back({static_cast<int>(root), nullptr});
            for (size_t next = order.size() - 1; next < order.size(); ++next) {
                const int at = order[next].variable;
                for (const Edge* edge : tree[static_cast<size_t>(at)]) {
                    const int other = edge->a == at ? edge->b : edge->a;
                    if (seen[static_cast<size_t>(other)]) continue;
                    seen[static_cast<size_t>(other)] = true;
                    order.push_back({other, edge});
                }
            }
        }
        return order;
    }

    // The best option of a variable for each of its parent's, given what each costs with all below it; what they cost is added to the parent's.
    std::vector<int> answers(const Visit& visit, std::vector<std::vector<double>>& best) const {
        const bool below_is_a = visit.up->a == visit.variable;
        const auto& own = best[static_cast<size_t>(visit.variable)];
        const Between cost = between(*visit.up);
        std::vector<int> result;
        for (double& above : best[static_cast<size_t>(visit.parent())]) {
            const size_t p = result.size();
            double least = std::numeric_limits<double>::infinity();
            int chosen = 0;
            for (size_t o = 0; o < own.size(); ++o) {
                const auto mine = static_cast<int>(o);
                const double seconds = own[o] + (below_is_a ? cost(o, p) : cost(p, o));
                // Among equals what is chosen already stays.
                if (seconds < least * (mine == options_[static_cast<size_t>(visit.variable)] ? 1 + kEqual : 1 - kEqual) || o == 0) {
                    least = seconds;
                    chosen = mine;
                }
            }
            above += least;
            result.push_back(chosen);
        }
        return result;
    }

    // The cheapest option of a root; among equals what is chosen already.
    int cheapest(size_t root, const std::vector<double>& costs) const {
        const auto least = std::min_element(costs.begin(), costs.end());
        const double now = costs[static_cast<size_t>(options_[root])];
        return now <= *least * (1 + kEqual) ? options_[root] : static_cast<int>(least - costs.begin());
    }

    // The best options over a spanning forest: what each costs with all below it, from the leaves up; then the choices, from the roots down.
    std::vector<int> solve_tree() {
        const std::vector<Visit> order = from_the_roots(spanning());
        auto best = alone();
        std::vector<std::vector<int>> answer(graph_.variables.size());
        for (auto visit = order.rbegin(); visit != order.rend(); ++visit)
            if (visit->up) answer[static_cast<size_t>(visit->variable)] = answers(*visit, best);
        std::vector<int> found(graph_.variables.size());
        for (const Visit& visit : order) {
            const auto v = static_cast<size_t>(visit.variable);
            found[v] = visit.up ? answer[v][static_cast<size_t>(found[static_cast<size_t>(visit.parent())])] : cheapest(v, best[v]);
        }
        return found;
    }

    double around(size_t variable) const;
    bool change_singly() {
        bool any = false;
        for (size_t v = 0; v < options_.size(); ++v) {
            const auto count = static_cast<int>(graph_.variables[v].size());
            const int before = options_[v];
            double least = around(v);
            int chosen = before;
            for (int o = 0; o < count; ++o) {
                options_[v] = o;
                const double seconds = around(v);
                if (seconds >= least * (1 - kEqual)) continue;
                least = seconds;
                chosen = o;
            }
            options_[v] = chosen;
            any = any || chosen != before;
        }
        return any;
    }

    const ChoiceGraph& graph_;
    std::vector<int> options_;
    std::vector<std::vector<size_t>> touching_;  // the values that a variable makes or uses
    std::vector<std::vector<bool>> in_tree_;     // of each use of each value
    std::vector<Edge> edges_;
};

double copies_of(const Value& value, const std::vector<int>& options) {
    const auto form = [&](const Use& use) { return use.forms[static_cast<size_t>(options[static_cast<size_t>(use.variable)])]; };
    const int made = form(value.made);
    double seconds = 0;
    for (size_t u = 0; u < value.uses.size(); ++u) {
        const int used = form(value.uses[u]);
        bool again = used == made;
        for (size_t w = 0; w < u && !again; ++w) again = form(value.uses[w]) == used;
        if (!again) seconds += value.copies[static_cast<size_t>(made * value.form_count + used)];
    }
    return seconds;
}

double Improving::around(size_t variable) const {
    double seconds = graph_.variables[variable][static_cast<size_t>(options_[variable])];
    for (const size_t v : touching_[variable]) seconds += copies_of(graph_.values[v], options_);
    return seconds;
}

}  // namespace

double seconds_of(const ChoiceGraph& graph, const std::vector<int>& options) {
    CONVOY_CHECK(options.size() == graph.variables.size(), "{} options for {} variables", options.size(), graph.variables.size());
    double seconds = 0;
    for (size_t v = 0; v < options.size(); ++v) seconds += graph.variables[v][static_cast<size_t>(options[v])];
    for (const Value& value : graph.values) seconds += copies_of(value, options);
    return seconds;
}

std::vector<int> improved(const ChoiceGraph& graph, std::vector<int> start) { return Improving(graph, std::move(start)).run(); }

}  // namespace convoy
