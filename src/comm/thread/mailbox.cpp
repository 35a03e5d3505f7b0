#include "comm/thread/mailbox.h"

#include <algorithm>

namespace convoy {

Message* Mailbox::match_or_keep(Message& message) {
    const std::lock_guard lock(mutex_);
    auto& others = message.send ? receives_ : sends_;
    const auto at = std::find_if(others.begin(), others.end(),
                                 [&](const Message* other) { return other->from == message.from && other->tag == message.tag; });
    if (at == others.end()) {
        (message.send ? sends_ : receives_).push_back(&message);
        return nullptr;
    }
    Message* const other = *at;
    others.erase(at);
    other->state.store(Message::State::Copying);
    return other;
}

bool Mailbox::remove(Message& message) {
    const std::lock_guard lock(mutex_);
    auto& own = message.send ? sends_ : receives_;
    const auto at = std::find(own.begin(), own.end(), &message);
    if (at == own.end()) return false;
    own.erase(at);
    return true;
}

}  // namespace convoy
