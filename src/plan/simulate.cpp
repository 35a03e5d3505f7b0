#include "plan/simulate.h"

#include <algorithm>
#include <array>
#include <deque>
#include <queue>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/random.h"
#include "plan/script.h"

namespace convoy {

namespace {

constexpr double kNever = 1e300;
constexpr int kSteps = 3;           // where programs carry: from the second to the end of the third nothing of the beginning is left
constexpr double kNothing = 1e-12;  // seconds: less than this is left over by rounding
// What traffic that gives way keeps of a link, where the other's part is 1: it does so for a limited time only.
constexpr double kWay = 0.5;

// Something under way on a rank: first a latency that nothing shortens, then work at a rate.
struct Activity {
    int instruction = -1;          // of any step
    double latency = 0, work = 0;  // seconds left, alone on its resources
    double rate = 1;
    double began = 0;
    bool active() const { return instruction >= 0; }
    double left() const { return latency > 0 ? latency : rate > 0 ? work / rate : kNever; }
};

// One rank that stands for its class.
struct Actor {
    const Script* script = nullptr;
    Rank rank = 0;
    double slowdown = 1;
    double capacity = 1, demand = 1;  // cores it has, and cores its computations want; devices count as one
    size_t next = 0;                  // of the script's walk
    int step = 0;
    std::deque<int> begun;  // collectives that are done when their results are needed
    bool doing = false;     // the first of them
    std::vector<char> done;
    Activity compute;
    std::array<std::deque<int>, kQueues> posted;
    std::array<Activity, kQueues> traffic;
    std::array<bool, kQueues> arrived{};  // the head of the queue waits for others
    std::unordered_map<int64_t, std::vector<std::pair<int, size_t>>>
        waiting;             // by order: who waits, with which queue, for this actor to arrive
    std::set<int64_t> here;  // orders at which it has arrived
    double last = 0, blocked_since = -1;
    uint64_t version = 0;
    ClassResult result, before, last_step;  // until now; until the last step began; until it was over
};

class Simulator {
  public:
    // Steps that follow each other carry work from one into the next; a single one does not, nor do steps on one machine without idle cores.
    Simulator(const std::vector<RankClass>& classes, const Machine& machine, const SimulateOptions& options, int steps)
        : classes_(classes),
          machine_(machine),
          options_(options),
          costs_(machine, {count_ranks(classes), options.threads}),
          does_collectives_(fills_one_machine()),
          steps_(does_collectives_ ? 1 : steps),
          scripts_(write_scripts(classes, costs_, steps_)) {
        actors_.resize(classes.size());
        for (size_t c = 0; c < classes.size(); ++c) seat(actors_[c], c);
    }

    Simulation run() {
        for (size_t a = 0; a < actors_.size(); ++a) resume(static_cast<int>(a));
        settle();
        while (!events_.empty()) {
            const Event event = events_.top();
            events_.pop();
            Actor& actor = actors_[static_cast<size_t>(event.actor)];
            if (event.version != actor.version) continue;
            now_ = event.time;
            advance(actor);
            complete(event.actor);
            settle();
        }
        return report();
    }

  private:
    struct Event {
        double time;
        int actor;
        uint64_t version;
        bool operator<(const Event& o) const { return time != o.time ? time > o.time : actor > o.actor; }
    };

    void seat(Actor& actor, size_t c) {
        actor.script = &scripts_.list[c];
        actor.rank = classes_[c].program.rank;
        actor.done.assign(actor.script->program->instructions.size() * static_cast<size_t>(steps_), 0);
        for (const Rank r : classes_[c].ranks)
            if (const auto at = options_.slowdown.find(r); at != options_.slowdown.end())
                actor.slowdown = std::max(actor.slowdown, at->second);
        if (costs_.device(actor.rank).joins) {
            actor.demand = costs_.threads(actor.rank);
            actor.capacity = std::max(actor.demand, cores(actor.rank));
        }
        ClassResult& r = actor.result;
        r.ranks = classes_[c].ranks;
        r.arena_bytes = actor.script->program->memory.arena_bytes;
        r.state_bytes = actor.script->program->memory.state_bytes;
        for (const Instruction& in : actor.script->program->instructions)
            (is_gradient_queue(in.queue) ? r.gradient_sent : r.activation_sent) += in.sent;
    }

    // A rank's share of the cores of its machine.
    double cores(Rank rank) const {
        const Seat& seat = costs_.seats()[static_cast<size_t>(rank)];
        return static_cast<double>(machine_.nodes[static_cast<size_t>(seat.kind)].devices) / seat.ranks_here;
    }
    // Executors then do collectives on the thread that computes (Link::fills_machine).
    bool fills_one_machine() const {
        const auto& seats = costs_.seats();
        return seats[0].ranks_here == static_cast<int>(seats.size()) && costs_.device(0).joins && costs_.threads(0) >= cores(0);
    }

    // Of an instruction of any step: its place in the program, and in which step it is.
    static size_t place(const Actor& actor, int i) { return static_cast<size_t>(i) % actor.script->program->instructions.size(); }
    static int step_of(const Actor& actor, int i) { return i / static_cast<int>(actor.script->program->instructions.size()); }
    const Instruction& instruction(const Actor& actor, int i) const { return actor.script->program->instructions[place(actor, i)]; }
    int64_t order(const Actor& actor, int i) const { return instruction(actor, i).order + step_of(actor, i) * scripts_.orders; }
    bool done(const Actor& actor, int step, const std::vector<int>& list) const {
        const size_t first = static_cast<size_t>(step) * actor.script->program->instructions.size();
        return std::all_of(list.begin(), list.end(), [&](int i) { return actor.done[first + static_cast<size_t>(i)]; });
    }

    // --- The clock of one rank ---

    // Everything under way moves on to now.
    void advance(Actor& actor) {
        const double passed = now_ - actor.last;
        actor.last = now_;
        if (actor.compute.active()) actor.result.compute_seconds += passed;
        const auto move = [&](Activity& a) {
            if (!a.active()) return;
            if (a.latency > 0)
                a.latency = a.latency - passed > kNothing ? a.latency - passed : 0;  // events lie on the end of every latency
            else
                a.work = std::max(0.0, a.work - passed * a.rate);
        };
        move(actor.compute);
        for (size_t q = 0; q < kQueues; ++q) {
            if (actor.traffic[q].active()) actor.result.traffic_seconds += passed;
            move(actor.traffic[q]);
        }
    }

    // Traffic gets the share of a core that it wants up to what is fair; computations get what is left. Traffic on one link divides it.
    void share(Actor& actor) {
        double wanted = 0;
        int threads = 0;
        std::map<int, double> on_link;
        for (const Activity& t : actor.traffic) {
            if (!t.active()) continue;
            wanted += cost(actor, t).compute_share;
            ++threads;
            if (t.latency <= 0) on_link[cost(actor, t).link] += gives_way(actor, t) ? kWay : 1;
        }
        const double computing = actor.compute.active() ? actor.demand : 0;
        double taken = wanted, fair = 1;
        const bool crowded = computing + wanted > actor.capacity && wanted > 0;
        if (crowded) {
            taken = 0;
            const double each = actor.capacity / (computing + threads);
            for (Activity& t : actor.traffic)
                if (t.active()) taken += std::min(cost(actor, t).compute_share, each);
            fair = each;
        }
        for (Activity& t : actor.traffic) {
            if (!t.active()) continue;
            const double want = cost(actor, t).compute_share;
            t.rate = crowded && want > fair ? fair / want : 1;
            if (t.latency <= 0) t.rate = std::min(t.rate, (gives_way(actor, t) ? kWay : 1.0) / on_link[cost(actor, t).link]);
        }
        if (actor.compute.active()) actor.compute.rate = std::min(1.0, (actor.capacity - taken) / actor.demand);
    }
    // Between machines gradients that are needed late let the others go first.
    bool gives_way(const Actor& actor, const Activity& t) const {
        const Activity& other = actor.traffic[static_cast<size_t>(Queue::Gradient)];
        return instruction(actor, t.instruction).queue == Queue::Late && cost(actor, t).link == machine_.network && other.active() &&
               other.latency <= 0 && cost(actor, other).link == cost(actor, t).link;
    }
    const TrafficCost& cost(const Actor& actor, const Activity& t) const { return actor.script->traffic[place(actor, t.instruction)]; }

    void schedule(int index) {
        Actor& actor = actors_[static_cast<size_t>(index)];
        share(actor);
        double least = kNever;
        if (actor.compute.active()) least = actor.compute.left();
        for (const Activity& t : actor.traffic)
            if (t.active()) least = std::min(least, t.left());
        ++actor.version;
        if (least < kNever) events_.push({now_ + least, index, actor.version});
    }

    // An actor whose activities change is looked at again when this moment is over.
    void touch(int index) {
        advance(actors_[static_cast<size_t>(index)]);
        touched_.insert(index);
    }
    void settle() {
        for (const int a : touched_) schedule(a);
        touched_.clear();
    }

    static bool over(const Activity& a) { return a.active() && a.latency <= 0 && a.work <= kNothing; }

    void complete(int index) {
        Actor& actor = actors_[static_cast<size_t>(index)];
        touch(index);
        if (over(actor.compute)) {
            finish(actor, actor.compute);
            ++actor.next;
        }
        for (size_t q = 0; q < kQueues; ++q) {
            if (!over(actor.traffic[q])) continue;
            finish(actor, actor.traffic[q]);
            actor.posted[q].pop_front();
            arrive(index, q);
        }
        resume(index);
    }

    void finish(Actor& actor, Activity& a) {
        actor.done[static_cast<size_t>(a.instruction)] = 1;
        if (options_.timeline) {
            const Instruction& in = instruction(actor, a.instruction);
            timeline_.push_back({.layer = in.layer,
                                 .what = text_of(in),
                                 .phase = std::string(name_of(in.phase)),
                                 .rank = actor.rank,
                                 .queue = static_cast<int>(in.queue),
                                 .begin_us = a.began * 1e6,
                                 .duration_us = (now_ - a.began) * 1e6,
                                 .flops = in.work,
                                 .bytes = in.bytes,
                                 .sent = in.sent});
        }
        a = {};
    }

    // The thread that walks through the program goes on as far as it can.
    void resume(int index) {
        Actor& actor = actors_[static_cast<size_t>(index)];
        touch(index);
        const auto& walk = actor.script->walk;
        while (!actor.compute.active() && actor.next < walk.size()) {
            const int at = walk[actor.next];
            if (at == kNone) {
                if (!do_begun(index, actor.begun.size()) || !done(actor, actor.step, actor.script->staying)) return block(actor);
                unblock(actor);
                end_step(actor);
                continue;
            }
            const Instruction& in = instruction(actor, at);
            const bool collective = does_collectives_ && std::holds_alternative<Collective>(in.action);
            const bool exchange = is_traffic(in.action) && !collective;
            if (!do_begun(index, exchange ? actor.begun.size() : needed(actor, in.waits))) return block(actor);
            if (!done(actor, step_of(actor, at), in.waits)) return block(actor);
            unblock(actor);
            if (is_traffic(in.action)) {
                ++actor.next;
                if (collective)
                    actor.begun.push_back(at);
                else
                    post(index, at);
                continue;
            }
            actor.compute = {.instruction = at, .work = seconds(actor, at), .began = now_};
        }
    }
    void post(int index, int at) {
        Actor& actor = actors_[static_cast<size_t>(index)];
        const auto q = static_cast<size_t>(instruction(actor, at).queue);
        actor.posted[q].push_back(at);
        if (actor.posted[q].size() == 1) arrive(index, q);
    }
    // Of the collectives that have begun: as many as go before what the next instruction waits for, and with it.
    static size_t needed(const Actor& actor, const std::vector<int>& waits) {
        for (size_t number = actor.begun.size(); number > 0; --number)
            if (std::find(waits.begin(), waits.end(), actor.begun[number - 1]) != waits.end()) return number;
        return 0;
    }
    // One after the other, on the thread that walks through the program; false while one is under way.
    bool do_begun(int index, size_t number) {
        Actor& actor = actors_[static_cast<size_t>(index)];
        for (; number > 0; --number) {
            const int at = actor.begun.front();
            if (!actor.doing) post(index, at);
            actor.doing = !actor.done[static_cast<size_t>(at)];
            if (actor.doing) return false;
            actor.begun.pop_front();
        }
        return true;
    }
    void end_step(Actor& actor) const {
        ++actor.next;
        ++actor.step;
        actor.result.seconds = now_;
        if (actor.step + 1 == steps_) actor.before = actor.result;
        if (actor.step == steps_) actor.last_step = actor.result;
    }
    void block(Actor& actor) const {
        if (actor.blocked_since < 0) actor.blocked_since = now_;
    }
    void unblock(Actor& actor) const {
        if (actor.blocked_since >= 0) actor.result.waiting_seconds += now_ - actor.blocked_since;
        actor.blocked_since = -1;
    }

    double seconds(const Actor& actor, int at) const {
        double s = actor.script->seconds[place(actor, at)] * actor.slowdown;
        if (options_.noise > 0) {
            const RandomStream random{options_.seed, static_cast<uint32_t>(actor.rank), stream_of("simulate")};
            s *= std::max(0.05, 1 + options_.noise * random.normal(place(actor, at)));
        }
        return s;
    }

    // --- Meeting others ---

    // The head of a queue is ready; it begins when all whom it concerns are.
    void arrive(int index, size_t q) {
        Actor& actor = actors_[static_cast<size_t>(index)];
        if (actor.posted[q].empty()) return;
        const int64_t order = this->order(actor, actor.posted[q].front());
        actor.arrived[q] = true;
        actor.here.insert(order);
        begin(index, q);
        const auto others = actor.waiting.find(order);
        if (others == actor.waiting.end()) return;
        const auto list = std::move(others->second);
        actor.waiting.erase(others);
        for (const auto& [other, queue] : list) begin(other, queue);
    }

    void begin(int index, size_t q) {
        Actor& actor = actors_[static_cast<size_t>(index)];
        if (!actor.arrived[q] || actor.traffic[q].active()) return;
        const int at = actor.posted[q].front();
        const int64_t order = this->order(actor, at);
        for (const int peer : actor.script->peers[place(actor, at)]) {
            Actor& other = actors_[static_cast<size_t>(peer)];
            if (other.here.count(order)) continue;
            other.waiting[order].emplace_back(index, q);
            return;
        }
        touch(index);
        actor.arrived[q] = false;
        const TrafficCost& c = actor.script->traffic[place(actor, at)];
        actor.traffic[q] = {.instruction = at, .latency = c.latency > kNothing ? c.latency : 0, .work = c.transfer, .began = now_};
    }

    Simulation report() {
        Simulation result{.ranks = count_ranks(classes_)};
        bool powers = true;
        double began = 0;  // the last step, on the rank that came to it last
        for (const Actor& actor : actors_) {
            CONVOY_CHECK(actor.step == steps_, "rank {} waits forever at instruction {} of {}", actor.rank, actor.next,
                         actor.script->walk.size());
            began = std::max(began, actor.before.seconds);
        }
        for (Actor& actor : actors_) {
            actor.result = actor.last_step;
            result.step_seconds = std::max(result.step_seconds, actor.result.seconds - began);
            actor.result.seconds -= actor.before.seconds;
            actor.result.compute_seconds -= actor.before.compute_seconds;
            actor.result.waiting_seconds -= actor.before.waiting_seconds;
            actor.result.traffic_seconds -= actor.before.traffic_seconds;
        }
        std::set<int64_t> nodes;
        for (Actor& actor : actors_) {
            const DeviceKind& device = costs_.device(actor.rank);
            powers = powers && device.busy_watts > 0;
            const double idle = std::max(0.0, result.step_seconds - actor.result.compute_seconds);
            result.joules += static_cast<double>(actor.result.ranks.size()) * actor.demand *
                             (device.busy_watts * actor.result.compute_seconds + device.idle_watts * idle);
            for (const Rank r : actor.result.ranks) {
                const Seat& seat = costs_.seats()[static_cast<size_t>(r)];
                if (nodes.insert(seat.node).second)
                    result.joules += machine_.nodes[static_cast<size_t>(seat.kind)].watts * result.step_seconds;
            }
            result.classes.push_back(actor.result);
        }
        if (!powers) result.joules = 0;
        result.timeline = std::move(timeline_);
        if (scripts_.computed > 0) {
            result.error = scripts_.error / scripts_.computed;
            result.roofline_share = scripts_.guessed / scripts_.computed;
        }
        return result;
    }

    const std::vector<RankClass>& classes_;
    const Machine& machine_;
    const SimulateOptions& options_;
    const CostModel costs_;
    const bool does_collectives_;
    const int steps_;
    const Scripts scripts_;
    std::vector<Actor> actors_;
    std::priority_queue<Event> events_;
    std::set<int> touched_;
    std::vector<TraceEvent> timeline_;
    double now_ = 0;
};

}  // namespace

const ClassResult& Simulation::slowest() const {
    return *std::max_element(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
}

int64_t Simulation::most_memory() const {
    int64_t most = 0;
    for (const ClassResult& c : classes) most = std::max(most, c.arena_bytes + c.state_bytes);
    return most;
}

Simulation simulate(const std::vector<RankClass>& classes, const Machine& machine, const SimulateOptions& options) {
    const bool carries = std::any_of(classes.begin(), classes.end(), [](const RankClass& c) {
        return std::any_of(c.program.instructions.begin(), c.program.instructions.end(),
                           [](const Instruction& in) { return in.due != kNone; });
    });
    if (!carries) return Simulator(classes, machine, options, 1).run();
    SimulateOptions numbers = options;
    numbers.timeline = false;
    Simulation result = Simulator(classes, machine, numbers, kSteps).run();
    if (options.timeline) result.timeline = Simulator(classes, machine, options, 1).run().timeline;
    return result;
}

}  // namespace convoy
