#include "comm/socket/connection.h"

#include <algorithm>
#include <cstring>

namespace convoy {

namespace {

constexpr size_t kHeaderBytes = sizeof(SocketMessage::Header);

// Takes a whole message that came before it was asked for.
void deliver(SocketMessage& message, const std::vector<std::byte>& bytes) {
    message.wrong_size = bytes.size() != message.header.bytes;
    if (!message.wrong_size && !bytes.empty()) std::memcpy(message.data, bytes.data(), bytes.size());
    message.done = true;
}

}  // namespace

Connection::Connection(Socket in, Socket out) : in_(std::move(in)), out_(std::move(out)) {}
Connection::Connection(Socket both) : in_(std::move(both)), closed_(!in_) {}

void Connection::post(SocketMessage& message) {
    if (message.send) {
        sends_.push_back(&message);
        return;
    }
    const auto at = std::find_if(early_.begin(), early_.end(), [&](const Arrival& a) { return a.header.tag == message.header.tag; });
    if (at == early_.end()) {
        receives_.push_back(&message);
        return;
    }
    deliver(message, at->kept);
    early_.erase(at);
}

// A send of which a part has gone cannot be taken back without the other end losing its way, and whoever removes one ends the run: nothing more
// is sent then.
void Connection::remove(SocketMessage& message) {
    if (message.send && message.moved > 0 && !message.done) closed_ = true;
    std::erase(sends_, &message);
    std::erase(receives_, &message);
    if (arrival_.target != &message) return;
    arrival_.target = nullptr;  // the rest of it goes nowhere
    arrival_.kept.resize(arrival_.header.bytes);
}

void Connection::wake_for(const SocketMessage& receive) {
    const size_t whole = kHeaderBytes + receive.header.bytes;
    const bool begun = arrival_.header_read == kHeaderBytes;
    const size_t rest = begun ? arrival_.header.bytes - arrival_.read : 0;  // of what is coming
    if (begun) return wake_at_least(arrival_.header.tag == receive.header.tag ? rest : rest + whole);
    wake_at_least(whole - arrival_.header_read);
}

void Connection::wake_at_least(size_t bytes) {
    if (bytes == woken_at_) return;
    wake_at(in_, bytes);
    woken_at_ = bytes;
}

void Connection::push() {
    const Socket& socket = out_ ? out_ : in_;
    while (!sends_.empty() && !closed_) {
        SocketMessage& m = *sends_.front();
        const size_t total = kHeaderBytes + m.header.bytes;
        const bool head = m.moved < kHeaderBytes;
        const std::byte* const from = head ? reinterpret_cast<const std::byte*>(&m.header) + m.moved : m.data + (m.moved - kHeaderBytes);
        const int64_t moved = write_some(socket, from, (head ? kHeaderBytes : total) - m.moved, head && m.header.bytes > 0);
        if (moved < 0) closed_ = true;
        if (moved <= 0) return;
        m.moved += static_cast<size_t>(moved);
        if (m.moved < total) continue;
        m.done = true;
        sends_.pop_front();
    }
}

void Connection::begin_body() {
    const auto at =
        std::find_if(receives_.begin(), receives_.end(), [&](const SocketMessage* m) { return m->header.tag == arrival_.header.tag; });
    if (at != receives_.end() && (*at)->header.bytes == arrival_.header.bytes) {
        arrival_.target = *at;
        return;
    }
    arrival_.kept.resize(arrival_.header.bytes);
}

std::byte* Connection::body() { return (arrival_.target ? arrival_.target->data : arrival_.kept.data()) + arrival_.read; }

void Connection::finish_body() {
    SocketMessage* const target = arrival_.target;
    const auto waiting = target ? std::find(receives_.begin(), receives_.end(), target)
                                : std::find_if(receives_.begin(), receives_.end(),
                                               [&](const SocketMessage* m) { return m->header.tag == arrival_.header.tag; });
    if (target)
        target->done = true;
    else if (waiting != receives_.end())
        deliver(**waiting, arrival_.kept);
    else
        early_.push_back(std::move(arrival_));
    if (waiting != receives_.end()) receives_.erase(waiting);
    arrival_ = {};
}

void Connection::pull() {
    while (!closed_) {
        const bool head = arrival_.header_read < kHeaderBytes;
        if (!head && arrival_.read == arrival_.header.bytes) {
            finish_body();
            continue;
        }
        std::byte* const to = head ? reinterpret_cast<std::byte*>(&arrival_.header) + arrival_.header_read : body();
        const int64_t moved = read_some(in_, to, head ? kHeaderBytes - arrival_.header_read : arrival_.header.bytes - arrival_.read);
        if (moved < 0) closed_ = true;
        if (moved <= 0) return;
        (head ? arrival_.header_read : arrival_.read) += static_cast<size_t>(moved);
        if (head && arrival_.header_read == kHeaderBytes) begin_body();
    }
}

}  // namespace convoy
