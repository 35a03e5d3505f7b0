#include "plan/search_free.h"

#include <algorithm>

#include "base/error.h"
#include "model/cost.h"
#include "plan/sizes.h"

namespace convoy {

namespace {

constexpr int kMostTimes = 64;  // more ranks than were asked for are tried up to so many times

class Cases {
  public:
    Cases(const FreeSearch& request, const MakeGraph& make, const Machine& machine, const Target& target)
        : request_(request), make_(make), machine_(machine), target_(target), seats_(seats(machine)) {
        objective_ = request.options.objective;
        if (objective_ == Objective::Time && request.batches.size() > 1) objective_ = Objective::Samples;
    }

    FreeResult run() {
        FreeResult result;
        bool any = false;
        for (const int64_t batch : request_.batches)
            for (const int micro : request_.micro_batches)
                for (const int ranks : request_.ranks) {
                    result.cases.push_back(search({batch, micro, ranks}, request_.options));
                    const CaseResult& last = result.cases.back();
                    if (last.possible() && (!any || last.score < result.cases[result.best].score)) {
                        any = true;
                        result.best = result.cases.size() - 1;
                    }
                }
        if (!any) refuse(result.cases.back());
        return result;
    }

  private:
    CaseResult search(const SearchCase& what, SearchOptions options) const {
        CaseResult result{.what = what, .search = {}};
        options.ranks = what.ranks;
        try {
            const Graph graph = make_(what.batch, what.micro_batches);
            result.search = search_plan(graph, machine_, target_, options);
            const ScoredPlan& best = result.search.best;
            result.score = score(best, objective_, machine_, what.ranks, what.batch);
            if (!best.fits)
                result.failure = fmt::format("it does not fit at any split: a rank may use {}, and what needs least ({}) needs {}",
                                             size_text(result.search.memory_limit), best.name, size_text(best.memory));
        } catch (const Error& error) {
            result.failure = error.what();
        }
        return result;
    }

    [[noreturn]] void refuse(const CaseResult& last) const {
        const SearchCase& what = last.what;
        std::vector<std::string> instead;
        if (!last.search.plans.empty()) {
            SearchOptions quick = request_.options;
            quick.explain = false;
            quick.finalists = 2;
            for (int micro = 2 * what.micro_batches; micro <= what.batch; micro *= 2) {
                const CaseResult tried = search({what.batch, micro, what.ranks}, quick);
                if (!tried.possible()) continue;
                instead.push_back(fmt::format("--micro-batches {} ({})", micro, size_text(tried.search.best.memory)));
                break;
            }
            for (int64_t ranks = 2 * what.ranks; ranks <= int64_t{kMostTimes} * what.ranks && (seats_ < 0 || ranks <= seats_); ranks *= 2) {
                const CaseResult tried = search({what.batch, what.micro_batches, static_cast<int>(ranks)}, quick);
                if (!tried.possible()) continue;
                instead.push_back(fmt::format("--ranks {} ({})", ranks, size_text(tried.search.best.memory)));
                break;
            }
            for (int64_t batch = what.batch / 2; batch >= 1 && instead.empty(); batch /= 2) {
                const CaseResult tried = search({batch, 1, what.ranks}, quick);
                if (tried.possible()) instead.push_back(fmt::format("--batch {} ({})", batch, size_text(tried.search.best.memory)));
            }
            if (instead.empty()) instead.push_back(fmt::format("--memory {}", size_at_least(last.search.best.memory)));
        } else if (what.batch % what.micro_batches != 0) {
            int64_t fewer = std::min<int64_t>(what.micro_batches, what.batch), more = what.micro_batches;
            while (what.batch % fewer != 0) --fewer;
            while (more < what.batch && what.batch % more != 0) ++more;
            instead.push_back(fmt::format("--micro-batches {}", fewer));
            if (more <= what.batch) instead.push_back(fmt::format("--micro-batches {}", more));
        } else if (seats_ > 0 && what.ranks > seats_) {
            instead.push_back(fmt::format("--ranks {}", seats_));
        } else {
            for (const int count : nearby_counts(what.ranks, what.batch, seats_)) instead.push_back(fmt::format("--ranks {}", count));
        }
        fail("batch {} on {} rank{} of {}: {}{}", what.batch, what.ranks, what.ranks == 1 ? "" : "s", machine_.name, last.failure,
             instead.empty() ? "" : fmt::format("; what would do: {}", fmt::join(instead, ", or ")));
    }

    const FreeSearch& request_;
    const MakeGraph& make_;
    const Machine& machine_;
    const Target& target_;
    const int64_t seats_;  // -1: any number
    Objective objective_;
};

}  // namespace

FreeResult search_cases(const FreeSearch& request, const MakeGraph& make, const Machine& machine, const Target& target) {
    return Cases(request, make, machine, target).run();
}

std::vector<int> nearby_counts(int ranks, int64_t batch, int64_t most) {
    const auto easy = [&](int n) {
        for (int p = 2; p * p <= n; ++p)
            while (n % p == 0) {
                if (p > 7 && batch % p != 0) return false;
                n /= p;
            }
        return n <= 7 || batch % n == 0;
    };
    std::vector<int> found;
    for (int n = ranks - 1; n >= 1; --n)
        if (easy(n)) {
            found.push_back(n);
            break;
        }
    for (int n = ranks + 1; n < 2 * ranks && (most < 0 || n <= most); ++n)
        if (easy(n)) {
            found.push_back(n);
            break;
        }
    return found;
}

double useful_share(const SearchSpace& space, const Plan& plan) {
    const auto chosen = choices_of(space, plan);
    if (!chosen) return 1;
    double all = 0, used = 0;
    for (size_t i = 0; i < space.ops.size(); ++i) {
        if (!space.ops[i].free) continue;
        const double work = cost_of(space.ops[i].forward.op, space.ops[i].forward.inputs, space.ops[i].forward.outputs).work;
        double parts = 1;
        for (size_t a = 0; a < plan.grids[0].axes.size(); ++a)
            if ((*chosen)[i].label[a] >= 0) parts *= plan.grids[0].axes[a].size;
        all += work;
        used += work * parts / plan.grids[0].size();
    }
    return all > 0 ? used / all : 1;
}

}  // namespace convoy
