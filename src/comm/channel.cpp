#include "comm/channel.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"

namespace convoy {

namespace {

// "rank 1 (not responding), rank 3"
std::string describe_missing(Transport& transport, Lane lane, const std::vector<Rank>& ranks) {
    const auto answers = transport.arrivals_of(0, lane, ranks);  // any key: whether they answer is what counts
    std::vector<std::string> texts;
    for (size_t i = 0; i < ranks.size(); ++i) texts.push_back(fmt::format("rank {}{}", ranks[i], answers[i] ? "" : " (not responding)"));
    return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

int64_t TrafficCount::total_bytes() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

Channel::Channel(Transport& transport, Lane lane, std::chrono::milliseconds limit) : transport_(transport), lane_(lane), limit_(limit) {
    set_label("");
}

Channel::Label Channel::label_of(std::string_view layer) {
    auto at = counts_.find(layer);
    if (at == counts_.end()) at = counts_.emplace(std::string(layer), TrafficCount{}).first;
    return &*at;
}

void Channel::set_label(Label label) {
    label_ = label->first;
    counted_ = &label->second;
}

void Channel::clear_counts() {
    for (auto& [label, count] : counts_) count = {};
}

void Channel::charge(Traffic kind, int64_t bytes) {
    counted_->bytes[static_cast<size_t>(kind)] += bytes;
    ++counted_->calls[static_cast<size_t>(kind)];
}

Posted Channel::post(const Outgoing& message) {
    CONVOY_CHECK(message.tag >= 0 && message.tag <= kMaxTag, "tag {} of a message to rank {}", message.tag, message.to);
    CONVOY_CHECK(message.to >= 0 && message.to < transport_.size(), "a message to rank {} of {}", message.to, transport_.size());
    charge(Traffic::Transfer, static_cast<int64_t>(message.data.size()));
    try {
        return {transport_.send({lane_, message.to, message.tag}, message.data), message.to, true, label_};
    } catch (const RunFailed& e) {
        throw failed_in(e, Traffic::Transfer, label_, {&message.to, 1});
    }
}

Posted Channel::post(const Incoming& message) {
    CONVOY_CHECK(message.tag >= 0 && message.tag <= kMaxTag, "tag {} of a message from rank {}", message.tag, message.from);
    CONVOY_CHECK(message.from >= 0 && message.from < transport_.size(), "a message from rank {} of {}", message.from, transport_.size());
    try {
        return {transport_.receive({lane_, message.from, message.tag}, message.data), message.from, false, label_};
    } catch (const RunFailed& e) {
        throw failed_in(e, Traffic::Transfer, label_, {&message.from, 1});
    }
}

bool Channel::wait(std::span<Request> requests, std::span<const Posted> posted) {
    peers_.clear();
    for (const Posted& p : posted)
        if (std::find(peers_.begin(), peers_.end(), p.peer) == peers_.end()) peers_.push_back(p.peer);
    const std::string_view label = posted.empty() ? label_ : posted.front().label;
    const LaneWorkScope scope(transport_.work(lane_), {.label = label, .ranks = peers_});
    try {
        return transport_.wait(requests, deadline());
    } catch (const RunFailed& e) {
        throw failed_in(e, Traffic::Transfer, label, peers_);
    }
}

void Channel::finish(Posted& posted) {
    if (!wait({&posted.request, 1}, {&posted, 1})) give_up({&posted, 1});
}

void Channel::send(Rank to, int tag, std::span<const std::byte> data) {
    Posted posted = post(Outgoing{to, tag, data});
    finish(posted);
}

void Channel::receive(Rank from, int tag, std::span<std::byte> data) {
    Posted posted = post(Incoming{from, tag, data});
    finish(posted);
}

void Channel::exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) {
    exchanged_.clear();
    requests_.clear();
    const auto add = [this](const Posted& posted) {
        exchanged_.push_back(posted);
        requests_.push_back(posted.request);
    };
    bool in_time = false;
    try {
        for (const Incoming& message : receives) add(post(message));
        for (const Outgoing& message : sends) add(post(message));
        in_time = wait(requests_, exchanged_);
    } catch (...) {
        transport_.withdraw(requests_);
        throw;
    }
    for (size_t i = 0; i < requests_.size(); ++i) exchanged_[i].request = requests_[i];
    if (!in_time) give_up(exchanged_);
}

std::string Channel::describe(std::string_view label) { return label.empty() ? "between steps" : fmt::format("of layer \"{}\"", label); }

std::string Channel::describe(Lane lane, Traffic kind, std::string_view label, std::span<const Rank> ranks) {
    const bool transfer = kind == Traffic::Transfer;
    return fmt::format("{} {} on the {} queue ({}{} {})", transfer ? "a transfer" : name_of(kind), describe(label), name_of(lane),
                       transfer ? "with " : "", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

RunFailed Channel::failed_in(const RunFailed& failure, Traffic kind, std::string_view label, std::span<const Rank> ranks) const {
    std::string where = describe(lane_, kind, label, ranks);
    const Transport::Works& works = transport_.works_at_end();
    for (int i = 0; i < kLanes; ++i) {
        const auto lane = static_cast<Lane>(i);
        const auto& now = works[static_cast<size_t>(i)];
        if (now && lane != lane_) where += " and in " + describe(lane, now->kind, now->label, now->ranks);
    }
    return RunFailed(fmt::format("{}; rank {} was in {}", failure.what(), transport_.rank(), where));
}

void Channel::give_up(std::span<Posted> posted) {
    std::set<Rank> to, from;
    const std::string label(posted.front().label);
    for (Posted& p : posted) {
        if (p.request.active) (p.send ? to : from).insert(p.peer);
        transport_.withdraw({&p.request, 1});
    }
    std::vector<std::string> waits;
    if (!from.empty()) waits.push_back("a message from " + describe_missing(transport_, lane_, {from.begin(), from.end()}));
    if (!to.empty()) waits.push_back(describe_missing(transport_, lane_, {to.begin(), to.end()}) + " to take a message");
    fail("rank {} waited {:.3g} s in a transfer {} on the {} queue for {}", transport_.rank(), static_cast<double>(limit_.count()) * 1e-3,
         describe(label), name_of(lane_), fmt::join(waits, " and for "));
}

}  // namespace convoy
