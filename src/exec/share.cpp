#include "exec/share.h"

#include <unistd.h>

#include <array>

namespace convoy {

std::string share_text(Link* link, Rank from, const std::string& text) {
    if (!link || link->size() == 1) return text;
    Communicator& everyone = link->everyone();
    std::string shared = text;
    auto size = static_cast<int64_t>(shared.size());
    everyone.broadcast(reinterpret_cast<std::byte*>(&size), 1, DType::i64, from);
    shared.resize(static_cast<size_t>(size));
    if (size > 0) everyone.broadcast(reinterpret_cast<std::byte*>(shared.data()), size, DType::u8, from);
    return shared;
}

std::string machine_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "";
}

}  // namespace convoy
