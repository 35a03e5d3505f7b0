#include "tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "exec/share.h"
#include "program/key.h"
#include "tune/race.h"

namespace convoy {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// The first rank works while the others wait for its word; now and then it tells them to go on waiting, because a wait has a limit.
class Waiting {
  public:
    explicit Waiting(Link* link) : link_(link) {}
    void go_on() {
        if (!link_ || seconds_since(last_) < 2) return;
        share_text(link_, 0, "");
        last_ = Clock::now();
    }
    // What the first rank has to say at last; others pass nothing.
    std::string word(const std::string& text) {
        if (!link_ || link_->rank() == 0) return share_text(link_, 0, text);
        std::string heard;
        while (heard.empty()) heard = share_text(link_, 0, "");
        return heard;
    }

  private:
    Link* link_;
    Clock::time_point last_ = Clock::now();
};

bool settled(const Candidate& candidate) {
    const auto marked = [](const Layout& l) { return l.is_same(); };
    return std::none_of(candidate.inputs.begin(), candidate.inputs.end(), marked) &&
           std::none_of(candidate.outputs.begin(), candidate.outputs.end(), marked);
}

std::vector<Layout> layouts_of(const Program& program, const std::vector<SlotId>& slots) {
    std::vector<Layout> list;
    for (const SlotId id : slots) list.push_back(program.slot(id).layout);
    return list;
}

CopyProblem copy_of(const Program& program, const Instruction& in) {
    const Slot &from = program.slot(in.inputs[0]), &to = program.slot(in.outputs[0]);
    return {.shape = from.desc.shape, .from_type = from.desc.dtype, .to_type = to.desc.dtype, .from = from.layout, .to = to.layout};
}

// Names what was chosen, so that the same choice has the same name again.
std::string fingerprint(const std::vector<const Program*>& programs) {
    uint64_t hash = 14695981039346656037ull;
    const auto eat = [&](const std::string& text) {
        for (const char c : text + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    };
    for (const Program* program : programs) {
        eat(fmt::format("{} grids, {}", program->grids.size(), program->grids[0].ranks.size()));
        for (const Instruction& in : program->instructions) {
            const auto* compute = std::get_if<Compute>(&in.action);
            eat(compute ? key_of(compute->problem) + " by " + compute->algorithm : text_of(in));
            for (const auto* list : {&in.inputs, &in.outputs})
                for (const SlotId id : *list) eat(program->slot(id).layout.text());
        }
    }
    return fmt::format("{:016x}", hash);
}

class Tuner {
  public:
    Tuner(const Graph& graph, const TuneOptions& options)
        : graph_(graph),
          options_(options),
          session_(options.session),
          backend_(session_.backend()),
          target_(backend_.target(), options.session.limits),
          waiting_(options.session.link) {
        options_.session.costs = nullptr;
        options_.measure.threads = options.session.threads;
    }

    Tuning run() {
        if (leads()) {
            if (options_.cache) table_ = options_.cache->read();
            measure_kernels();
            measure_copies();
            keep();
        }
        table_ = cost_table_from_json(Json::parse(waiting_.word(leads() ? to_json(of_this_step()).dump() : "")));
        result_.table = std::make_shared<CostTable>(table_);
        judge();
        result_.seconds = seconds_since(begin_);
        return std::move(result_);
    }

  private:
    bool leads() const { return !options_.session.link || options_.session.link->rank() == 0; }

    Compiler compiler(const Costs* costs) const {
        return {
            graph_, options_.session.plan, target_, {.dtype = options_.session.dtype, .limits = options_.session.limits, .costs = costs}};
    }
    Rank rank() const { return options_.session.link ? options_.session.link->rank() : options_.session.plan.grids[0].ranks[0]; }
    std::vector<Rank> ranks() const {
        std::set<Rank> all;
        for (const Grid& grid : options_.session.plan.grids) all.insert(grid.ranks.begin(), grid.ranks.end());
        return {all.begin(), all.end()};
    }

    // --- Kernels ---------------------------------------------------------------------------------------------------------------------

    struct Task {
        Problem problem;
        std::string key;
        std::vector<Candidate> candidates;  // that are not known yet
    };

    // The problems of all ranks, each once, with the candidates that might win and are not known yet.
    std::vector<Task> tasks() {
        std::vector<Task> list;
        Compiler untuned = compiler(nullptr);
        for (const Rank r : ranks()) {
            const Program program = untuned.program(r);
            for (const Instruction& in : program.instructions) {
                const auto* compute = std::get_if<Compute>(&in.action);
                if (!compute) continue;
                std::string key = key_of(compute->problem);
                if (!seen_.insert(key).second) continue;
                auto candidates = worth_measuring(compute->problem, compute->algorithm);
                if (candidates.size() < 2) continue;
                const auto& known = table_.kernels[key];
                const size_t all = candidates.size();
                candidates.erase(
                    std::remove_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return known.count(key_of(c)) > 0; }),
                    candidates.end());
                result_.known += static_cast<int>(all - candidates.size());
                if (!candidates.empty()) list.push_back({compute->problem, std::move(key), std::move(candidates)});
            }
        }
        return list;
    }

    std::vector<Candidate> worth_measuring(const Problem& problem, const std::string& untuned) const {
        std::vector<Candidate> list;
        for (Candidate& c : target_.candidates(problem))
            if (settled(c)) list.push_back(std::move(c));
        double best = 1e300;
        for (const Candidate& c : list) best = std::min(best, c.seconds);
        const auto hopeless = [&](const Candidate& c) { return c.seconds > best * options_.hopeless_estimate && c.algorithm != untuned; };
        list.erase(std::remove_if(list.begin(), list.end(), hopeless), list.end());
        // The likely best first, so that the others are soon known to be hopeless.
        std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
        return list;
    }

    void measure_kernels() {
        const std::vector<Task> list = tasks();
        for (size_t i = 0; i < list.size(); ++i) {
            const Task& task = list[i];
            tell("{} of {} problems: {}", i + 1, list.size(), text_of(task.problem));
            const auto seconds = Contest(backend_, task.problem, options_.measure).run(task.candidates);
            for (size_t c = 0; c < seconds.size(); ++c) table_.kernels[task.key][key_of(task.candidates[c])] = seconds[c];
            result_.measured += static_cast<int>(seconds.size());
            waiting_.go_on();
            if (seconds_since(kept_) > 20) keep();
        }
    }

    // --- Copies: those that a choice made with optimistic guesses would use, until it uses none that was not measured ---------------------------

    void measure_copies() {
        constexpr int kMostTurns = 8;
        for (int turn = 0; turn < kMostTurns; ++turn) {
            const HopefulCosts costs(std::make_shared<CostTable>(table_), target_.copy_bytes_per_second());
            Compiler hopeful = compiler(&costs);
            bool fresh = false;
            for (const Rank r : ranks()) {
                const Program program = hopeful.program(r);
                for (const Instruction& in : program.instructions) {
                    if (!std::holds_alternative<Copy>(in.action)) continue;
                    const CopyProblem copy = copy_of(program, in);
                    const auto [entry, is_new] = table_.copies.emplace(key_of(copy), 0);
                    if (!is_new) continue;
                    tell("a copy of {}", to_string(copy.shape));
                    MeasureOptions how = options_.measure;
                    how.rounds = 5;
                    entry->second = measure_copy(backend_, copy, how);
                    fresh = true;
                    ++result_.measured;
                    waiting_.go_on();
                }
            }
            if (!fresh) return;
        }
    }

    // Copies that were not measured might be twice as fast as estimated.
    class HopefulCosts : public MeasuredCosts {
      public:
        using MeasuredCosts::MeasuredCosts;
        double copy_seconds(const CopyProblem& copy) const override {
            const double seconds = MeasuredCosts::copy_seconds(copy);
            return table().copies.count(key_of(copy)) > 0 ? seconds : seconds / 2;
        }
    };

    // Of all that the cache knows, what concerns this step.
    CostTable of_this_step() const {
        CostTable some = table_;
        for (auto it = some.kernels.begin(); it != some.kernels.end();)
            it = seen_.count(it->first) > 0 ? std::next(it) : some.kernels.erase(it);
        return some;
    }

    // --- The whole -------------------------------------------------------------------------------------------------------------------

    // Two choices compete with the untuned one: the best by the measurements, and the best when copies between layouts count several times.
    void judge() {
        const Program untuned = compiler(nullptr).program(rank());
        const std::string before = fingerprint({&untuned});
        std::set<std::string> met{before};
        std::optional<Program> shown;
        constexpr double kCopyWeights[] = {1, 4};
        for (const double weight : kCopyWeights) {
            const auto costs = std::make_shared<MeasuredCosts>(result_.table, target_.copy_bytes_per_second(), weight);
            Program tuned = compiler(costs.get()).program(rank());
            // The first rank's programs are named; others', which follow from the same table, are not looked at.
            const bool fresh = met.insert(fingerprint({&tuned})).second || ranks().size() > 1;
            const std::string word = share_text(options_.session.link, 0, fresh ? fingerprint({&untuned, &tuned}) : "known");
            if (!shown) shown = tuned;
            if (word == "known") continue;
            const Verdict verdict = verdict_on(word, costs);
            if (result_.verdict && verdict.ratio() >= result_.verdict->ratio()) continue;
            result_.verdict = verdict;
            result_.costs = verdict.better() ? costs : nullptr;
            shown = std::move(tuned);
        }
        if (leads()) list_choices(untuned, *shown, MeasuredCosts(result_.table, target_.copy_bytes_per_second()));
        result_.table = std::make_shared<CostTable>(table_);
    }

    Verdict verdict_on(const std::string& name, const std::shared_ptr<const MeasuredCosts>& costs) {
        const auto known = table_.verdicts.find(name);
        if (known != table_.verdicts.end()) return known->second;
        if (leads()) tell("a tuned step against the untuned one");
        SessionOptions with = options_.session;
        with.costs = costs;
        const Verdict verdict = race(graph_, options_.session, with, options_.race_seconds);
        table_.verdicts.emplace(name, verdict);
        raced_ = true;
        if (leads()) keep();
        return verdict;
    }

    void list_choices(const Program& untuned, const Program& tuned, const MeasuredCosts& costs) {
        std::map<std::string, size_t> rows;
        const auto computations = [](const Program& program) {
            std::vector<const Instruction*> list;
            for (const Instruction& in : program.instructions)
                if (std::holds_alternative<Compute>(in.action)) list.push_back(&in);
            return list;
        };
        const auto before = computations(untuned), after = computations(tuned);
        CONVOY_CHECK(before.size() == after.size(), "{} computations became {} by tuning", before.size(), after.size());
        for (size_t i = 0; i < before.size(); ++i) {
            const Problem& problem = std::get<Compute>(before[i]->action).problem;
            const std::string key = key_of(problem);
            const auto known = table_.kernels.find(key);
            if (known == table_.kernels.end() || known->second.empty()) continue;
            const auto seconds = [&](const Program& program, const Instruction& in) {
                return costs.seconds(problem, candidate_of(problem, program, in));
            };
            TunedChoice choice{.layer = before[i]->layer,
                               .what = fmt::format("{}: {}", name_of(before[i]->phase), text_of(*before[i])),
                               .problem = key,
                               .count = 1,
                               .untuned = std::get<Compute>(before[i]->action).algorithm,
                               .tuned = std::get<Compute>(after[i]->action).algorithm,
                               .untuned_seconds = seconds(untuned, *before[i]),
                               .tuned_seconds = seconds(tuned, *after[i])};
            const auto [row, fresh] = rows.emplace(key + choice.untuned + choice.tuned, result_.choices.size());
            if (fresh)
                result_.choices.push_back(std::move(choice));
            else
                ++result_.choices[row->second].count;
        }
        const auto gain = [](const TunedChoice& c) { return c.count * (c.untuned_seconds - c.tuned_seconds); };
        std::stable_sort(result_.choices.begin(), result_.choices.end(),
                         [&](const TunedChoice& a, const TunedChoice& b) { return gain(a) > gain(b); });
        result_.untuned_copies = copies(untuned, costs);
        result_.tuned_copies = copies(tuned, costs);
    }

    // The candidate behind an instruction.
    Candidate candidate_of(const Problem& problem, const Program& program, const Instruction& in) const {
        const auto& algorithm = std::get<Compute>(in.action).algorithm;
        const auto inputs = layouts_of(program, in.inputs), outputs = layouts_of(program, in.outputs);
        for (const Candidate& c : target_.candidates(problem))
            if (c.algorithm == algorithm && c.inputs == inputs && c.outputs == outputs) return c;
        return {.algorithm = algorithm, .inputs = inputs, .outputs = outputs};
    }

    static double copies(const Program& program, const Costs& costs) {
        double seconds = 0;
        for (const Instruction& in : program.instructions)
            if (std::holds_alternative<Copy>(in.action)) seconds += costs.copy_seconds(copy_of(program, in));
        return seconds;
    }

    template <class... Args>
    void tell(fmt::format_string<Args...> text, Args&&... args) const {
        if (options_.progress) options_.progress(fmt::format(text, std::forward<Args>(args)...));
    }

    // A cache that cannot be written costs time later, nothing else.
    void keep() {
        kept_ = Clock::now();
        if (!options_.cache || (result_.measured == 0 && !raced_)) return;
        try {
            table_ = options_.cache->add(table_);
        } catch (const Error& e) {
            warn("measurements are not kept: {}", e.what());
            options_.cache.reset();
        }
    }

    const Graph& graph_;
    TuneOptions options_;
    Session session_;
    Backend& backend_;
    LimitedTarget target_;
    Waiting waiting_;
    CostTable table_;
    std::set<std::string> seen_;  // the problems of all ranks
    Tuning result_;
    bool raced_ = false;
    const Clock::time_point begin_ = Clock::now();
    Clock::time_point kept_ = begin_;
};

}  // namespace

Tuning tune(const Graph& graph, const TuneOptions& options) { return Tuner(graph, options).run(); }

std::optional<double> best_seconds(const CostTable& table, const Problem& problem) {
    const auto known = table.kernels.find(key_of(problem));
    if (known == table.kernels.end() || known->second.empty()) return std::nullopt;
    double best = 1e300;
    for (const auto& entry : known->second) best = std::min(best, entry.second);
    return best;
}

}  // namespace convoy
