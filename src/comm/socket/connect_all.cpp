#include "comm/socket/connect_all.h"

#include <algorithm>

#include "base/error.h"
#include "comm/socket/json_fields.h"

namespace convoy {

namespace {

constexpr auto kAnswer = std::chrono::seconds(2);  // how long one who has come may take to say who it is

}  // namespace

std::vector<std::vector<Socket>> connect_all(const Introduction& introduction, const Listener& listener, Deadline deadline) {
    const auto size = static_cast<Rank>(introduction.places.size());
    std::vector<std::vector<Socket>> sockets(introduction.places.size());
    int to_come = 0;
    for (Rank peer = 0; peer < size; ++peer) {
        const Introduction::Place& place = introduction.places[static_cast<size_t>(peer)];
        auto& list = sockets[static_cast<size_t>(peer)];
        list.resize(static_cast<size_t>(introduction.kinds));
        if (place.address.empty()) continue;
        if (peer > introduction.rank) {
            to_come += introduction.kinds;
            continue;
        }
        for (int kind = 0; kind < introduction.kinds; ++kind) {
            Socket socket = connect_to(place.address, place.port, deadline);
            const Json hello{{"word", introduction.word}, {"rank", introduction.rank}, {"kind", kind}};
            require(socket && send_text(socket, hello.dump(), deadline), "rank {} cannot reach rank {} at {}:{}", introduction.rank, peer,
                    place.address, place.port);
            list[static_cast<size_t>(kind)] = std::move(socket);
        }
    }
    while (to_come > 0) {
        Socket socket = accept_from(listener, deadline);
        require(static_cast<bool>(socket), "rank {} knows where all others are, but {} of their connections did not come in time",
                introduction.rank, to_come);
        std::string text;
        if (!receive_text(socket, text, std::min<Deadline>(deadline, Clock::now() + kAnswer))) continue;
        const Json hello = Json::parse(text, nullptr, false);
        const int rank = number_in(hello, "rank"), kind = number_in(hello, "kind");
        const bool ours = hello.is_object() && hello.value("word", Json()) == Json(introduction.word);
        if (!ours || rank <= introduction.rank || rank >= size || kind < 0 || kind >= introduction.kinds) continue;
        sockets[static_cast<size_t>(rank)][static_cast<size_t>(kind)] = std::move(socket);
        --to_come;
    }
    return sockets;
}

}  // namespace convoy
