#include "program/moves.h"

#include <algorithm>

#include "base/error.h"

namespace convoy {

namespace {

bool has(const std::vector<int>& list, int v) { return std::find(list.begin(), list.end(), v) != list.end(); }

const DimSplit* split_along(const Distribution& d, int axis) {
    for (const DimSplit& s : d.splits)
        if (has(s.axes, axis)) return &s;
    return nullptr;
}

const DimSplit* split_of(const Distribution& d, int dim) {
    for (const DimSplit& s : d.splits)
        if (s.dim == dim) return &s;
    return nullptr;
}

class Mover {
  public:
    Mover(const MoveRequest& request, const std::vector<Grid>& grids)
        : r_(request), grids_(grids), now_{{}, request.from.distribution, request.from.boxes} {}

    std::vector<Step> run() {
        reduce();
        if (!arrived()) travel();
        return std::move(steps_);
    }

  private:
    const Grid& grid(const Distribution& d) const { return grids_[static_cast<size_t>(d.grid)]; }
    bool same_grid() const { return now_.distribution.grid == r_.to.grid; }

    bool arrived() const { return same_grid() && now_.distribution.partial == r_.to.partial && now_.boxes == r_.boxes; }

    void go(Move move, Distribution distribution, Boxes boxes) {
        now_ = {std::move(move), std::move(distribution), std::move(boxes)};
        steps_.push_back(now_);
    }
    void go(Move::Kind kind, std::vector<int> axes, Distribution distribution) {
        auto boxes = owned_boxes(distribution, grid(distribution), r_.shape);
        go({kind, std::move(axes)}, std::move(distribution), std::move(boxes));
    }

    // Sums that the target does not leave partial are completed: straight into the parts that the target wants where it splits a dim along that
    // axis, or else everywhere.
    void reduce() {
        std::vector<int> open;
        for (const int a : now_.distribution.partial)
            if (!(same_grid() && has(r_.to.partial, a))) open.push_back(a);
        if (open.empty()) return;
        Distribution done = now_.distribution;
        done.partial.erase(std::remove_if(done.partial.begin(), done.partial.end(), [&](int a) { return has(open, a); }),
                           done.partial.end());
        if (r_.statistics) return go(Move::Kind::MergeStatistics, open, done);
        if (open.size() == 1 && same_grid() && scatters(open[0], done)) return go(Move::Kind::ReduceScatter, open, done);
        go(Move::Kind::AllReduce, open, done);
    }

    // Whether the target cuts, along this axis, inside the parts there are; `done` is then split so.
    bool scatters(int axis, Distribution& done) const {
        const DimSplit* wanted = split_along(r_.to, axis);
        if (!wanted) return false;
        const DimSplit* old = split_of(done, wanted->dim);
        std::vector<int> axes = old ? old->axes : std::vector<int>{};
        axes.push_back(axis);
        const int parts = grid(done).axes[static_cast<size_t>(axis)].size;
        DimSplit split{wanted->dim, axes, {}};
        if (wanted->axes == axes) {
            split.cuts = wanted->cuts;
            if (old)  // every old cut must be among the new ones
                for (size_t p = 0; p < old->cuts.size(); ++p)
                    if (split.cuts[p * static_cast<size_t>(parts)] != old->cuts[p]) return false;
        } else {
            const std::vector<int64_t> outer = old ? old->cuts : std::vector<int64_t>{0, r_.shape[wanted->dim]};
            split.cuts = {0};
            for (size_t p = 0; p + 1 < outer.size(); ++p) {
                const auto inner = even_cuts(outer[p + 1] - outer[p], parts);
                for (size_t c = 1; c < inner.size(); ++c) split.cuts.push_back(outer[p] + inner[c]);
            }
        }
        std::erase_if(done.splits, [&](const DimSplit& s) { return s.dim == wanted->dim; });
        done.splits.push_back(split);
        return true;
    }

    void travel() {
        if (same_grid() && holds_all()) return go({Move::Kind::Slice, {}}, r_.to, r_.boxes);
        if (same_grid() && gathers()) return;
        CONVOY_CHECK(now_.distribution.partial.empty(), "a sum not yet reduced cannot travel between grids or be cut anew");
        go({Move::Kind::Exchange, {}}, r_.to, r_.boxes);
    }

    bool holds_all() const {
        if (now_.boxes.same() && r_.boxes.same()) return contains(now_.boxes[0], r_.boxes[0]);
        for (size_t i = 0; i < r_.boxes.size(); ++i)
            if (!contains(now_.boxes[i], r_.boxes[i])) return false;
        return true;
    }

    // An allgather where leaving out the axes that the target does not cut by gives exactly the target.
    bool gathers() {
        Distribution without = now_.distribution;
        std::vector<int> axes;
        for (DimSplit& s : without.splits) {
            while (!s.axes.empty() && !split_along(r_.to, s.axes.back())) {
                const size_t parts = static_cast<size_t>(grid(without).axes[static_cast<size_t>(s.axes.back())].size);
                axes.push_back(s.axes.back());
                s.axes.pop_back();
                std::vector<int64_t> cuts;
                for (size_t c = 0; c < s.cuts.size(); c += parts) cuts.push_back(s.cuts[c]);
                s.cuts = cuts;
            }
        }
        if (axes.empty()) return false;
        std::erase_if(without.splits, [](const DimSplit& s) { return s.axes.empty(); });
        std::sort(axes.begin(), axes.end());
        if (!(owned_boxes(without, grid(without), r_.shape) == r_.boxes)) return false;
        go(Move::Kind::AllGather, axes, without);
        return true;
    }

    const MoveRequest& r_;
    const std::vector<Grid>& grids_;
    Step now_;
    std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> moves(const MoveRequest& request, const std::vector<Grid>& grids) { return Mover(request, grids).run(); }

}  // namespace convoy
