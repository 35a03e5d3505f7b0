// One step of a trace, small enough for a page: a few ranks of many, and short events that follow each other as one.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "report/views.h"

namespace convoy {

namespace {

constexpr size_t kMostRanks = 16, kMostEvents = 16'000;

using Events = std::vector<const TraceEvent*>;

std::map<int64_t, Events> last_step_by_rank(const Trace& trace) {
    int64_t step = 0;
    for (const TraceEvent& e : trace.events) step = std::max(step, e.step);
    std::map<int64_t, Events> ranks;
    for (const TraceEvent& e : trace.events)
        if (e.step == step) ranks[e.rank].push_back(&e);
    return ranks;
}

// Evenly chosen, the first and the last among them.
std::vector<int64_t> chosen_ranks(const std::map<int64_t, Events>& ranks, size_t most) {
    std::vector<int64_t> all, chosen;
    for (const auto& [rank, events] : ranks) all.push_back(rank);
    most = std::max<size_t>(1, std::min(most, all.size()));
    for (size_t i = 0; i < most; ++i) chosen.push_back(all[most == 1 ? 0 : i * (all.size() - 1) / (most - 1)]);
    return chosen;
}

// Ends of the union of intervals, and for a sweep over them.
using Intervals = std::vector<std::pair<double, double>>;
Intervals united(Intervals intervals) {
    std::sort(intervals.begin(), intervals.end());
    Intervals result;
    for (const auto& [begin, end] : intervals) {
        if (!result.empty() && begin <= result.back().second)
            result.back().second = std::max(result.back().second, end);
        else
            result.emplace_back(begin, end);
    }
    return result;
}
double length(const Intervals& intervals) {
    double sum = 0;
    for (const auto& [begin, end] : intervals) sum += end - begin;
    return sum;
}

class Names {
  public:
    explicit Names(std::vector<std::string>& names) : names_(names) {
        for (size_t i = 0; i < names.size(); ++i) index_.emplace(names[i], static_cast<int>(i));
    }
    int operator()(const std::string& name) {
        const auto [at, added] = index_.emplace(name, static_cast<int>(names_.size()));
        if (added) names_.push_back(name);
        return at->second;
    }

  private:
    std::vector<std::string>& names_;
    std::map<std::string, int> index_;
};

// Neighbours of one lane and phase that are too short to be seen apart become one, until there are few enough.
void merge_short(std::vector<TimelineEvent>& events, double span_us, size_t most, Names& whats, Names& layers) {
    std::stable_sort(events.begin(), events.end(), [](const TimelineEvent& a, const TimelineEvent& b) {
        return std::tie(a.rank, a.queue, a.begin_us) < std::tie(b.rank, b.queue, b.begin_us);
    });
    std::vector<int> held(events.size(), 1);
    for (double shortest = span_us / 4000; events.size() > most && shortest < span_us; shortest *= 2) {
        size_t kept = 0;
        for (size_t i = 1; i < events.size(); ++i) {
            TimelineEvent& last = events[kept];
            const TimelineEvent& next = events[i];
            const double end = std::max(last.begin_us + last.duration_us, next.begin_us + next.duration_us);
            const bool alike = last.rank == next.rank && last.queue == next.queue && last.phase == next.phase;
            if (alike && end - last.begin_us < shortest) {
                last.duration_us = end - last.begin_us;
                last.flops += next.flops;
                last.bytes += next.bytes;
                last.sent += next.sent;
                held[kept] += held[i];
                if (last.layer != next.layer) last.layer = layers("");
            } else {
                events[++kept] = next;
                held[kept] = held[i];
            }
        }
        events.resize(kept + 1);
    }
    for (size_t i = 0; i < events.size(); ++i)
        if (held[i] > 1) events[i].what = whats(fmt::format("{} short instructions", held[i]));
}

class TimelineMaker {
  public:
    explicit TimelineMaker(size_t tracks) : most_events_(kMostEvents / std::max<size_t>(1, tracks)) {}

    void add(const NamedTrace& named) {
        const auto ranks = last_step_by_rank(*named.trace);
        if (ranks.empty()) return;
        TimelineTrack track{.name = named.name};
        double begin = ranks.begin()->second.front()->begin_us, end = begin;
        for (const auto& [rank, events] : ranks)
            for (const TraceEvent* e : events) {
                begin = std::min(begin, e->begin_us);
                end = std::max(end, e->begin_us + e->duration_us);
            }
        track.span_us = end - begin;
        const auto chosen = chosen_ranks(ranks, kMostRanks);
        for (const int64_t rank : chosen) {
            int64_t count = 1;
            for (const auto& [of, number] : named.counts)
                if (of == rank) count = number;
            track.ranks.push_back({rank, count, parts_of(ranks.at(rank), begin, track.span_us)});
            for (const TraceEvent* e : ranks.at(rank)) track.events.push_back(event(*e, track.ranks.size() - 1, begin, *named.trace));
        }
        const size_t before = track.events.size();
        merge_short(track.events, track.span_us, most_events_, whats_, layers_);
        if (chosen.size() < ranks.size())
            remark(fmt::format("{} of the {} ranks in the {} trace are shown.", chosen.size(), ranks.size(), named.name));
        if (track.events.size() < before)
            remark(fmt::format("Short neighbours are drawn as one: {} events for {}.", track.events.size(), before));
        timeline_.tracks.push_back(std::move(track));
    }

    std::optional<Timeline> take() {
        if (timeline_.tracks.empty()) return std::nullopt;
        return std::move(timeline_);
    }

  private:
    void remark(const std::string& text) { timeline_.remark += (timeline_.remark.empty() ? "" : " ") + text; }

    TimelineEvent event(const TraceEvent& e, size_t rank, double begin, const Trace& trace) {
        return {.rank = static_cast<int>(rank),
                .queue = queues_(trace.queues[static_cast<size_t>(e.queue)]),
                .phase = phases_(e.phase),
                .layer = layers_(e.layer),
                .what = whats_(e.what),
                .begin_us = e.begin_us - begin,
                .duration_us = e.duration_us,
                .flops = e.flops,
                .bytes = e.bytes,
                .sent = e.sent};
    }

    size_t most_events_;
    Timeline timeline_{.queues = {"compute", "activation", "gradient", "late", "host"}};
    Names queues_{timeline_.queues}, phases_{timeline_.phases}, layers_{timeline_.layers}, whats_{timeline_.whats};
};

}  // namespace

StepParts parts_of(const Events& events, double begin_us, double span_us) {
    StepParts parts;
    Intervals computing, busy;
    for (const TraceEvent* e : events) {
        const std::pair<double, double> interval{e->begin_us - begin_us, e->begin_us - begin_us + e->duration_us};
        const bool host = e->phase != "forward" && e->phase != "backward" && e->phase != "update";
        if (host) continue;
        busy.push_back(interval);
        if (e->queue != 0) continue;
        computing.push_back(interval);
        (e->phase == "forward" ? parts.forward_us : e->phase == "backward" ? parts.backward_us : parts.update_us) += e->duration_us;
    }
    const double compute = length(united(computing)), all = length(united(busy));
    parts.waiting_us = all - compute;
    parts.idle_us = std::max(0.0, span_us - all);
    return parts;
}

std::optional<Timeline> timeline_of(const std::vector<NamedTrace>& traces) {
    TimelineMaker maker(traces.size());
    for (const NamedTrace& trace : traces) maker.add(trace);
    return maker.take();
}

std::vector<Comparison::Layer> layers_compared(const Trace& measured, const Trace& predicted) {
    std::map<std::string, Comparison::Layer> layers;
    const auto add = [&](const Trace& trace, double Comparison::Layer::*field) {
        const auto ranks = last_step_by_rank(trace);
        if (ranks.empty()) return;
        for (const TraceEvent* e : ranks.begin()->second)
            if (e->queue == 0 && !e->layer.empty()) layers[e->layer].*field += e->duration_us;
    };
    add(measured, &Comparison::Layer::measured_us);
    add(predicted, &Comparison::Layer::predicted_us);
    std::vector<Comparison::Layer> sorted;
    for (auto& [name, layer] : layers) sorted.push_back({name, layer.measured_us, layer.predicted_us});
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.measured_us > b.measured_us; });
    return sorted;
}

}  // namespace convoy
