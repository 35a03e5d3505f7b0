// A collective on all ranks' buffers at once: each rank computes or copies its share directly. Internal to the thread transport.
#pragma once

#include "comm/thread/shared_group.h"

namespace convoy {

// The share of one place, between meet and leave. Error when the ranks do not make the same call.
void share_work(const SharedGroup& group, int place);

}  // namespace convoy
