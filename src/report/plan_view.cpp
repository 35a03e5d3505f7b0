#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "report/fields.h"
#include "report/views.h"

namespace convoy {

namespace {

constexpr size_t kShownRanks = 128;

PlanView::Mesh mesh_of(const Json& grid) {
    PlanView::Mesh mesh;
    for (const Json& axis : fields::list(grid, "axes")) mesh.axes.emplace_back(fields::text(axis, "name"), fields::whole(axis, "size", 1));
    const Json& ranks = fields::list(grid, "ranks");
    mesh.size = static_cast<int64_t>(ranks.size());
    for (const Json& rank : ranks) {
        if (mesh.ranks.size() == kShownRanks) break;
        mesh.ranks.push_back(rank.is_number() ? rank.get<int64_t>() : 0);
    }
    return mesh;
}

}  // namespace

std::optional<PlanView> plan_of(const Json& placement) {
    const Json& layers = fields::list(placement, "layers");
    PlanView view;
    for (const Json& layer : layers)
        if (!fields::text(layer, "layer").empty()) view.layers.push_back(layer);
    if (view.layers.empty()) return std::nullopt;
    for (const Json& grid : fields::list(placement, "grids")) view.grids.push_back(mesh_of(grid));
    view.unfollowed = fields::list(placement, "unfollowed");
    const std::string spec = fields::text(placement, "spec");
    view.lead = spec.empty() ? "Where the input, the weights and the output of every layer lie."
                             : fmt::format("Where the input, the weights and the output of every layer lie under the plan {}.", spec);
    return view;
}

}  // namespace convoy
