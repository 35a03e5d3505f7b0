// Stands in for http_server.cpp where cpp-httplib was not there at build time.
#include "base/error.h"
#include "base/json.h"
#include "report/server.h"

namespace convoy {

void serve(const ServerOptions&, const std::function<Json()>&, const std::function<void(const std::string&)>&, const std::atomic<bool>&) {
    fail(
        "this build of convoy cannot serve pages: cpp-httplib (libcpp-httplib-dev) was not there when it was built; `convoy report` writes "
        "the same page to a file");
}

}  // namespace convoy
