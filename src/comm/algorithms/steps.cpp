#include "comm/algorithms/steps.h"

#include <algorithm>

namespace convoy {

void Steps::begin() {
    deadline_ = channel_.deadline();
    requests_.clear();
    peers_.clear();
    sent_ = 0;
}

Steps::Index Steps::send(Rank to, const std::byte* data, int64_t bytes) {
    if (bytes == 0) return kNothing;
    requests_.push_back(channel_.transport().send({channel_.lane(), to, tag_}, {data, static_cast<size_t>(bytes)}));
    peers_.push_back(to);
    sent_ += bytes;
    return static_cast<Index>(requests_.size()) - 1;
}

Steps::Index Steps::receive(Rank from, std::byte* data, int64_t bytes) {
    if (bytes == 0) return kNothing;
    requests_.push_back(channel_.transport().receive({channel_.lane(), from, tag_}, {data, static_cast<size_t>(bytes)}));
    peers_.push_back(from);
    return static_cast<Index>(requests_.size()) - 1;
}

void Steps::wait(Index index) {
    if (index == kNothing) return;
    Request& request = requests_[static_cast<size_t>(index)];
    if (request.active) wait({&request, 1});
}

void Steps::wait_all() {
    wait(requests_);
    requests_.clear();
    peers_.clear();
}

void Steps::wait(std::span<Request> requests) {
    try {
        if (channel_.transport().wait(requests, deadline_)) return;
    } catch (...) {
        channel_.transport().withdraw(requests_);
        throw;
    }
    std::vector<Rank> late;
    for (const Request& request : requests)
        if (request.active) late.push_back(peers_[static_cast<size_t>(&request - requests_.data())]);
    std::sort(late.begin(), late.end());
    late.erase(std::unique(late.begin(), late.end()), late.end());
    channel_.transport().withdraw(requests_);
    throw TimedOut{std::move(late)};
}

std::byte* Steps::scratch(int64_t bytes, int number) {
    Buffer& buffer = scratch_[number];
    if (buffer.bytes() < bytes) buffer = Buffer(bytes);
    return buffer.data();
}

void send_pieces(const Team& team, const Elements& elements, int to, const std::byte* data, int64_t count) {
    for (int64_t first = 0; first < count; first += elements.per_segment())
        team.send(to, data + first * elements.size, std::min(elements.per_segment(), count - first) * elements.size);
}

void run(const Team& team, const Elements& elements, const CombiningExchange& exchange) {
    const int64_t piece = elements.per_segment();
    const int64_t pieces = (exchange.count + piece - 1) / piece;
    std::byte* const slots = team.steps.scratch(std::min<int64_t>(pieces, Steps::kWindow) * piece * elements.size);
    std::vector<Steps::Index> incoming(static_cast<size_t>(pieces));
    const auto count_of = [&](int64_t i) { return std::min(piece, exchange.count - i * piece); };
    const auto slot_of = [&](int64_t i) { return slots + i % Steps::kWindow * piece * elements.size; };
    const auto post = [&](int64_t i) {
        incoming[static_cast<size_t>(i)] = team.receive(exchange.peer, slot_of(i), count_of(i) * elements.size);
    };
    int64_t sent = 0;  // elements
    const auto send_up_to = [&](int64_t limit) {
        for (; sent < std::min(limit, exchange.send_count); sent += std::min(piece, exchange.send_count - sent))
            team.send(exchange.peer, exchange.send + sent * elements.size, std::min(piece, exchange.send_count - sent) * elements.size);
    };
    for (int64_t i = 0; i < std::min<int64_t>(pieces, Steps::kWindow); ++i) post(i);
    for (int64_t i = 0; i < pieces; ++i) {
        send_up_to((i + Steps::kWindow) * piece);
        team.steps.wait(incoming[static_cast<size_t>(i)]);
        std::byte* const own = exchange.data + i * piece * elements.size;
        const std::byte* const theirs = slot_of(i);
        elements.combine(own, exchange.theirs_first ? theirs : own, exchange.theirs_first ? own : theirs, count_of(i));
        if (i + Steps::kWindow < pieces) post(i + Steps::kWindow);
    }
    send_up_to(exchange.send_count);
    team.steps.wait_all();
}

}  // namespace convoy
