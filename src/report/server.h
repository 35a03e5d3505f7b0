// A page that is served while it changes: the page itself, and its data for whoever asks whether there is something new.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/json_fwd.h"

namespace convoy {

struct ServerOptions {
    std::string host = "127.0.0.1";  // loopback: other machines cannot reach it
    int port = 0;                    // 0: any that is free
};

// Serves until `stop`. `data` gives the data to show, with a "version" that changes with them; it is called from several threads. `ready` is told the
// address once it answers. Error when the address is taken, or this build has no server.
void serve(const ServerOptions& options, const std::function<Json()>& data, const std::function<void(const std::string&)>& ready,
           const std::atomic<bool>& stop);

}  // namespace convoy
