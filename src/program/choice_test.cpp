#include "program/choice.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/test_count.h"

namespace convoy {
namespace {

class Drawn {
  public:
    explicit Drawn(uint32_t number) : random_{.seed = 7, .step = number} {}
    int below(int n) { return static_cast<int>(random_.uniform(next_++) * n); }
    double seconds() { return random_.uniform(next_++); }

    // Variables in a row; value i is made by variable i and used by the next, and with `skips` by a later one too. Forms are as many as options.
    ChoiceGraph graph(int variables, bool skips) {
        ChoiceGraph g;
        for (int v = 0; v < variables; ++v) {
            g.variables.emplace_back();
            for (int o = 1 + below(4); o > 0; --o) g.variables.back().push_back(seconds());
        }
        for (int v = 0; v + 1 < variables; ++v) {
            ChoiceGraph::Value value{.made = use(g, v), .uses = {use(g, v + 1)}, .form_count = kForms};
            if (skips && below(2) == 0) value.uses.push_back(use(g, v + 1 + below(variables - v - 1)));
            for (int from = 0; from < kForms; ++from)
                for (int to = 0; to < kForms; ++to) value.copies.push_back(from == to ? 0 : seconds());
            g.values.push_back(std::move(value));
        }
        return g;
    }

  private:
    static constexpr int kForms = 3;
    ChoiceGraph::Use use(const ChoiceGraph& g, int variable) {
        ChoiceGraph::Use use{.variable = variable};
        for (size_t o = 0; o < g.variables[static_cast<size_t>(variable)].size(); ++o) use.forms.push_back(below(kForms));
        return use;
    }

    RandomStream random_;
    uint64_t next_ = 0;
};

double least(const ChoiceGraph& graph) {
    std::vector<int> options(graph.variables.size(), 0);
    double best = seconds_of(graph, options);
    while (true) {
        size_t v = 0;
        while (v < options.size() && ++options[v] == static_cast<int>(graph.variables[v].size())) options[v++] = 0;
        if (v == options.size()) return best;
        best = std::min(best, seconds_of(graph, options));
    }
}

TEST(Choice, CountsACopyOnce) {
    ChoiceGraph g;
    g.variables = {{1}, {2}, {4}};
    ChoiceGraph::Value value;
    value.made = {0, {0}};
    value.uses = {{1, {1}}, {2, {1}}};
    value.form_count = 2;
    value.copies = {0, 8, 16, 0};
    g.values = {value};
    EXPECT_EQ(seconds_of(g, {0, 0, 0}), 15);
}

TEST(Choice, IsExactOnChains) {
    for (int i = 0; i < test_count(30, 300); ++i) {
        const ChoiceGraph g = Drawn(static_cast<uint32_t>(i)).graph(8, false);
        const auto found = improved(g, std::vector<int>(g.variables.size(), 0));
        EXPECT_NEAR(seconds_of(g, found), least(g), 1e-9) << "graph " << i;
    }
}

TEST(Choice, IsNeverWorseThanItsStartAndNoSingleChangeHelps) {
    int best = 0, all = 0;
    for (int i = 0; i < test_count(30, 300); ++i) {
        Drawn draw(1000 + static_cast<uint32_t>(i));
        const ChoiceGraph g = draw.graph(8, true);
        std::vector<int> start;
        for (const auto& options : g.variables) start.push_back(draw.below(static_cast<int>(options.size())));
        auto found = improved(g, start);
        const double seconds = seconds_of(g, found);
        EXPECT_LE(seconds, seconds_of(g, start) + 1e-12);
        for (size_t v = 0; v < found.size(); ++v) {
            const int before = found[v];
            for (size_t o = 0; o < g.variables[v].size(); ++o) {
                found[v] = static_cast<int>(o);
                EXPECT_GE(seconds_of(g, found), seconds - 1e-6) << "graph " << i;
            }
            found[v] = before;
        }
        best += seconds <= least(g) + 1e-9;
        ++all;
    }
    EXPECT_GE(best, all * 7 / 10) << "of " << all << " were solved exactly";
}

}  // namespace
}  // namespace convoy
