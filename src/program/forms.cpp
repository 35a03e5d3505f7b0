#include "program/forms.h"

#include <algorithm>

#include "base/error.h"
#include "program/moves.h"

namespace convoy {

Forms::Forms(const Graph& graph, const Plan& plan, PlacedGraph& result)
    : graph_(graph), plan_(plan), result_(result), forms_(graph.values().size()) {}

int Forms::home(ValueId v) const {
    CONVOY_CHECK(placed(v), "\"{}\" has no place yet", graph_.value(v).name);
    return of(v)[0];
}

bool Forms::of_statistics(ValueId v) const {
    const NodeId producer = graph_.value(v).producer;
    return producer != kNone && makes_statistics(graph_.node(producer).op);
}

int Forms::add(PlacedValue value) {
    auto& forms = forms_[static_cast<size_t>(value.value)];
    forms.push_back(static_cast<int>(result_.values.size()));
    result_.values.push_back(std::move(value));
    return forms.back();
}

void Forms::settle(ValueId v, int form) {
    const int before = home(v);
    auto& forms = forms_[static_cast<size_t>(v)];
    forms.erase(std::find(forms.begin(), forms.end(), form));
    forms.insert(forms.begin(), form);
    if (!at(before).distribution.partial.empty()) forms.erase(std::find(forms.begin(), forms.end(), before));
}

int Forms::fetch(ValueId v, const Distribution& d, const Boxes& boxes, const Reader& reader) {
    for (const int f : of(v))
        if (at(f).distribution.grid == d.grid && at(f).distribution.partial == d.partial && at(f).boxes == boxes) return f;
    const bool first_state = is_state(graph_, v) && !placed(v);
    if (is_given(graph_, v) || first_state) {
        CONVOY_CHECK(d.partial.empty(), "\"{}\" cannot be given as a sum", graph_.value(v).name);
        return add({v, d, boxes, {}});
    }
    int from = source(v, d, boxes);
    for (const Step& step : moves({at(from), d, boxes, graph_.shape(v), of_statistics(v)}, plan_.grids)) {
        PlacedNode move{
            .move = step.move, .inputs = {from}, .layer = reader.layer, .phase = reader.phase, .micro_batch = reader.micro_batch};
        from = add({v, step.distribution, step.boxes, {}});
        move.outputs = {from};
        result_.nodes.push_back(std::move(move));
    }
    return from;
}

// The form to begin from: one that needs no traffic, one that is complete, or the home.
int Forms::source(ValueId v, const Distribution& d, const Boxes& boxes) const {
    for (const int f : of(v)) {
        if (at(f).distribution.grid != d.grid || at(f).distribution.partial != d.partial) continue;
        const size_t count = boxes.same() && at(f).boxes.same() ? 1 : boxes.size();
        bool all = true;
        for (size_t i = 0; i < count && all; ++i) all = contains(at(f).boxes[i], boxes[i]);
        if (all) return f;
    }
    for (const int f : of(v))  // a sum that was completed for someone is not summed again
        if (at(f).distribution.grid == d.grid && at(f).distribution.partial.empty() && d.partial.empty() && holds_its_own(f)) return f;
    return home(v);
}

// Not so for forms made for one reader: halos, and boxes that some op reads.
bool Forms::holds_its_own(int form) const {
    const Distribution& d = at(form).distribution;
    return at(form).boxes == owned_boxes(d, grid(d.grid), graph_.shape(at(form).value));
}

int Forms::complete(ValueId v) {
    if (!placed(v)) {  // an output that is an input or a state nobody reads
        const Distribution d{.grid = layer_plan(plan_, graph_.value(v).name).grid};
        return fetch(v, d, owned_boxes(d, grid(d.grid), graph_.shape(v)), {graph_.value(v).name, Phase::Forward, 0});
    }
    Distribution d = lies(v);
    if (d.partial.empty()) return home(v);
    d.partial.clear();
    const Node& node = graph_.node(graph_.value(v).producer);
    return fetch(v, d, owned_boxes(d, grid(d.grid), graph_.shape(v)), {node.layer, node.phase, node.micro_batch});
}

}  // namespace convoy
