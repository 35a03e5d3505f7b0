// Words between ranks, for what is no part of a step: who found what, what the first rank decided.
#pragma once

#include <string>

#include "exec/link.h"

namespace convoy {

// The text of rank `from`, on all ranks, which must all ask at the same time. Without a link: the text itself.
std::string share_text(Link* link, Rank from, const std::string& text);

// The name of the machine that this rank runs on; empty when it has none.
std::string machine_name();

}  // namespace convoy
