#include "comm/socket/rendezvous.h"

#include <unistd.h>

#include <map>
#include <optional>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "comm/socket/json_fields.h"

namespace convoy {

namespace {

using std::chrono::milliseconds;

constexpr auto kAnswer = std::chrono::seconds(2);  // how long one who was reached may take to answer
constexpr auto kLookAgain = milliseconds(20);

struct Place {
    std::string address, host;
    int port = 0;
};

// A word that only the ranks of this run know.
std::string fresh_word() {
    std::random_device random;
    std::string word;
    for (int i = 0; i < 4; ++i) word += fmt::format("{:08x}", random());
    return word;
}

// The same for processes of one machine that is up.
std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    std::error_code none;
    const char* const boot = "/proc/sys/kernel/random/boot_id";
    return fmt::format("{} {}", name.data(), std::filesystem::exists(boot, none) ? read_file(boot) : "");
}

Json parsed(const std::string& text) { return Json::parse(text, nullptr, false); }

double seconds(milliseconds limit) { return static_cast<double>(limit.count()) * 1e-3; }

struct Known {
    std::string word;
    std::vector<Place> places;
};

// The first rank: waits for all, then tells them where everybody is.
class Host {
  public:
    Host(const RendezvousOptions& options, const Listener& listener, Deadline deadline)
        : options_(options), listener_(listener), deadline_(deadline), word_(fresh_word()) {}

    Known run() {
        const Json where{{"rendezvous", word_}, {"address", listener_.address}, {"port", listener_.port}, {"ranks", options_.size}};
        write_file(options_.file, where.dump() + "\n");
        try {
            while (static_cast<int>(guests_.size()) < options_.size - 1) admit();
        } catch (...) {
            remove_file();
            throw;
        }
        remove_file();
        Known known{word_, {{listener_.address, host_name(), listener_.port}}};
        Json list = Json::array();
        for (auto& [rank, guest] : guests_) known.places.push_back(guest.place);
        for (const Place& p : known.places) list.push_back({{"address", p.address}, {"host", p.host}, {"port", p.port}});
        for (auto& [rank, guest] : guests_)
            require(send_text(guest.socket, Json{{"places", list}}.dump(), deadline_), "rank {} left the rendezvous {} again", rank,
                    options_.file.string());
        return known;
    }

  private:
    struct Guest {
        Socket socket;
        Place place;
    };

    void remove_file() const {
        std::error_code none;
        std::filesystem::remove(options_.file, none);
    }

    void admit() {
        Socket socket = accept_from(listener_, deadline_);
        if (!socket) fail_missing();
        std::string text;
        if (!receive_text(socket, text, std::min<Deadline>(deadline_, Clock::now() + kAnswer))) return;
        const Json hello = parsed(text);
        if (text_in(hello, "rendezvous") != word_) return;  // of another run, or something else altogether
        const int rank = number_in(hello, "rank"), ranks = number_in(hello, "ranks");
        std::string fault;
        if (ranks != options_.size)
            fault = fmt::format("rank {} was started as one of {} ranks, rank 0 as one of {}", rank, ranks, options_.size);
        else if (rank < 1 || rank >= options_.size || still_here(rank))
            fault = fmt::format("two processes were started as rank {}", rank);
        if (!fault.empty()) {
            for (auto& [other, guest] : guests_) send_text(guest.socket, Json{{"fault", fault}}.dump(), deadline_);
            send_text(socket, Json{{"fault", fault}}.dump(), deadline_);
            fail("rendezvous {}: {}", options_.file.string(), fault);
        }
        if (!send_text(socket, Json{{"welcome", word_}}.dump(), deadline_)) return;
        guests_[rank] = {std::move(socket), {text_in(hello, "address"), text_in(hello, "host"), number_in(hello, "port")}};
    }

    // Whether this rank has come and not gone again; one that had no answer in time comes a second time.
    bool still_here(int rank) const {
        const auto at = guests_.find(rank);
        std::byte none{};
        return at != guests_.end() && read_some(at->second.socket, &none, 1) >= 0;
    }

    [[noreturn]] void fail_missing() const {
        std::vector<int> missing;
        for (int r = 1; r < options_.size; ++r)
            if (!guests_.count(r)) missing.push_back(r);
        fail("rank 0 waited {:.3g} s at the rendezvous {} for rank{} {}", seconds(options_.limit), options_.file.string(),
             missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
    }

    const RendezvousOptions& options_;
    const Listener& listener_;
    Deadline deadline_;
    std::string word_;
    std::map<int, Guest> guests_;
};

// One look at the file and at who is behind it. Nothing, and why in `why`, when it must be looked at again.
std::optional<Known> try_to_join(const RendezvousOptions& options, const Listener& listener, Deadline deadline, std::string& why) {
    std::string text;
    try {
        text = read_file(options.file);
    } catch (const Error&) {
        why = "there is no such file";
        return std::nullopt;
    }
    const Json where = parsed(text);
    const std::string word = text_in(where, "rendezvous"), address = text_in(where, "address");
    const int port = number_in(where, "port");
    if (word.empty() || address.empty() || port <= 0) {
        why = "the file is no rendezvous of ours";
        return std::nullopt;
    }
    why = fmt::format("it leads to {}:{}, where no rank 0 of this run answers; an earlier run may have left it", address, port);
    const Deadline soon = std::min<Deadline>(deadline, Clock::now() + kAnswer);
    const Socket socket = connect_to(address, port, soon);
    const Json hello{{"rendezvous", word},  {"rank", options.rank},        {"ranks", options.size},
                     {"host", host_name()}, {"address", listener.address}, {"port", listener.port}};
    if (!socket || !send_text(socket, hello.dump(), soon) || !receive_text(socket, text, soon)) return std::nullopt;
    Json answer = parsed(text);
    if (text_in(answer, "fault").empty() && text_in(answer, "welcome") != word) return std::nullopt;
    if (!text_in(answer, "welcome").empty()) {
        require(receive_text(socket, text, deadline), "rank {} met rank 0 at the rendezvous {}, but not all others came in {:.3g} s",
                options.rank, options.file.string(), seconds(options.limit));
        answer = parsed(text);
    }
    require(text_in(answer, "fault").empty(), "rendezvous {}: {}", options.file.string(), text_in(answer, "fault"));
    Known known{word, {}};
    if (answer.is_object() && answer.contains("places"))
        for (const Json& p : answer["places"]) known.places.push_back({text_in(p, "address"), text_in(p, "host"), number_in(p, "port")});
    require(static_cast<int>(known.places.size()) == options.size, "rendezvous {}: rank 0 tells of {} ranks, expected {}",
            options.file.string(), known.places.size(), options.size);
    return known;
}

Known join(const RendezvousOptions& options, const Listener& listener, Deadline deadline) {
    std::string why;
    while (Clock::now() < deadline) {
        if (auto known = try_to_join(options, listener, deadline, why)) return std::move(*known);
        std::this_thread::sleep_for(kLookAgain);
    }
    fail("rank {} waited {:.3g} s at the rendezvous {} for rank 0: {}", options.rank, seconds(options.limit), options.file.string(), why);
}

}  // namespace

Connections meet(const RendezvousOptions& options) {
    require(options.size >= 1 && options.rank >= 0 && options.rank < options.size, "there is no rank {} among {} ranks", options.rank,
            options.size);
    const Deadline deadline = Clock::now() + options.limit;
    const Listener listener = listen_at(options.address);
    const Known known = options.rank == 0 ? Host(options, listener, deadline).run() : join(options, listener, deadline);
    Introduction introduction{.word = known.word, .rank = options.rank, .kinds = kControl + 1};
    for (const Place& place : known.places) introduction.places.push_back({place.address, place.port});
    introduction.places[static_cast<size_t>(options.rank)] = {};
    Connections result{.of = connect_all(introduction, listener, deadline)};
    std::map<std::string, int> number;
    for (const Place& place : known.places)
        result.nodes.push_back(number.emplace(place.host, static_cast<int>(number.size())).first->second);
    return result;
}

}  // namespace convoy
