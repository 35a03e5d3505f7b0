#include "comm/socket/control.h"

#include <poll.h>

#include "base/json.h"
#include "comm/socket/socket_lanes.h"

namespace convoy {

namespace {

constexpr auto kPatience = std::chrono::seconds(5);  // for one text, once it has begun
constexpr int kLookMs = 20;

}  // namespace

SocketControl::SocketControl(Rank rank, std::vector<Socket> sockets, std::chrono::milliseconds answer_limit)
    : rank_(rank), answer_limit_(answer_limit) {
    for (Socket& socket : sockets) {
        peers_.push_back(std::make_unique<Peer>());
        peers_.back()->open = static_cast<bool>(socket);
        peers_.back()->socket = std::move(socket);
    }
    thread_ = std::thread([this] { listen(); });
}

SocketControl::~SocketControl() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    thread_.join();
}

std::atomic<int64_t>& SocketControl::arrivals(GroupKey key) {
    const std::lock_guard lock(mutex_);
    return counts_[key];
}

void SocketControl::tell(Rank rank, const std::string& text) {
    Peer& peer = *peers_[static_cast<size_t>(rank)];
    const std::lock_guard lock(peer.writing);
    if (peer.socket)
        send_text(peer.socket, text, Clock::now() + kPatience);  // who does not hear it is gone, which its end of the line will tell
}

std::vector<std::optional<int64_t>> SocketControl::ask(GroupKey key, std::span<const Rank> ranks) {
    int64_t question = 0;
    {
        const std::lock_guard lock(mutex_);
        question = ++questions_;
    }
    for (const Rank r : ranks) tell(r, Json{{"question", question}, {"key", key}}.dump());
    std::vector<std::optional<int64_t>> known(ranks.size());
    const auto all_known = [&] {
        bool all = true;
        for (size_t i = 0; i < ranks.size(); ++i) {
            if (const auto at = answers_.find({ranks[i], question}); at != answers_.end()) known[i] = at->second;
            all = all && known[i];
        }
        return all;
    };
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, answer_limit_, all_known);
    std::erase_if(answers_, [&](const auto& answer) { return answer.first.second == question; });
    return known;
}

void SocketControl::fail_with(const std::string& text) {
    {
        const std::lock_guard lock(mutex_);
        if (why_.empty()) why_ = text;
        failed_ = true;
    }
    changed_.notify_all();
}

void SocketControl::fail_all(const std::string& why) {
    const std::string text = fmt::format("rank {} ended the run: {}", rank_, why);
    for (Rank r = 0; r < static_cast<Rank>(peers_.size()); ++r) tell(r, Json{{"failure", text}}.dump());
    fail_with(text);
}

std::optional<std::string> SocketControl::failure() const {
    if (!failed_) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return why_;
}

void SocketControl::wait_for_failure(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return failed_.load(); });
}

std::vector<Rank> SocketControl::leave(std::chrono::milliseconds limit) {
    for (Rank r = 0; r < static_cast<Rank>(peers_.size()); ++r) tell(r, Json{{"leaves", true}}.dump());
    std::vector<Rank> here;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] {
        here.clear();
        for (Rank r = 0; r < static_cast<Rank>(peers_.size()); ++r)
            if (r != rank_ && !peers_[static_cast<size_t>(r)]->left) here.push_back(r);
        return here.empty() || failed_;
    });
    return here;
}

void SocketControl::hear(Rank rank) {
    Peer& peer = *peers_[static_cast<size_t>(rank)];
    std::string text;
    if (!receive_text(peer.socket, text, Clock::now() + kPatience)) {
        peer.open = false;
        bool left = false;
        {
            const std::lock_guard lock(mutex_);
            left = peer.left;
        }
        if (!left) fail_with(gone_text(rank));
        return;
    }
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return;
    if (json.contains("failure")) return fail_with(json["failure"].get<std::string>());
    if (json.contains("leaves")) {
        const std::lock_guard lock(mutex_);
        peer.left = true;
        changed_.notify_all();
    } else if (json.contains("answer")) {
        const std::lock_guard lock(mutex_);
        answers_[{rank, json["answer"].get<int64_t>()}] = json["count"].get<int64_t>();
        changed_.notify_all();
    } else if (json.contains("question")) {
        const int64_t count = arrivals(json["key"].get<GroupKey>()).load();
        tell(rank, Json{{"answer", json["question"]}, {"count", count}}.dump());
    }
}

void SocketControl::listen() {
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (stop_) return;
        }
        std::vector<pollfd> lines;
        std::vector<Rank> ranks;
        for (Rank r = 0; r < static_cast<Rank>(peers_.size()); ++r) {
            const Peer& peer = *peers_[static_cast<size_t>(r)];
            if (!peer.open) continue;
            lines.push_back({peer.socket.get(), POLLIN, 0});
            ranks.push_back(r);
        }
        if (::poll(lines.data(), lines.size(), kLookMs) <= 0) continue;
        for (size_t i = 0; i < lines.size(); ++i)
            if (lines[i].revents != 0) hear(ranks[i]);
    }
}

}  // namespace convoy
