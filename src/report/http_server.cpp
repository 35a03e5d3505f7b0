#include <chrono>
#include <thread>

#include <httplib.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "report/page.h"
#include "report/server.h"

namespace convoy {

namespace {

// The page shows nothing that was not asked of this very server, and is of no use inside another page.
void add_headers(httplib::Response& response) {
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("X-Frame-Options", "DENY");
}

void answer(httplib::Response& response, const std::function<void()>& work) {
    add_headers(response);
    try {
        work();
    } catch (const std::exception& error) {
        response.status = 500;
        response.set_content(fmt::format("{}\n", error.what()), "text/plain; charset=utf-8");
    }
}

// Another site's name that leads to this address (DNS rebinding) is refused: only addresses and localhost are names of ours.
bool is_own_name(const httplib::Request& request) {
    std::string host = request.get_header_value("Host");
    if (const size_t colon = host.rfind(':'); colon != std::string::npos && host.find(']', colon) == std::string::npos) host.resize(colon);
    return host == "localhost" || host.find_first_not_of("0123456789.") == std::string::npos || host.front() == '[';
}

void refuse_other_names(httplib::Server& server) {
    server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
        if (is_own_name(request)) return httplib::Server::HandlerResponse::Unhandled;
        response.status = 403;
        response.set_content("ask by address or as localhost\n", "text/plain");
        return httplib::Server::HandlerResponse::Handled;
    });
}

void add_answers(httplib::Server& server, const std::function<Json()>& data) {
    server.Get("/", [&data](const httplib::Request&, httplib::Response& response) {
        answer(response, [&] { response.set_content(page_of(data()), "text/html; charset=utf-8"); });
    });
    server.Get("/data.json", [&data](const httplib::Request& request, httplib::Response& response) {
        answer(response, [&] {
            const Json now = data();
            if (request.has_param("since") && request.get_param_value("since") == now.value("version", ""))
                response.status = 204;
            else
                response.set_content(now.dump(-1, ' ', false, Json::error_handler_t::replace), "application/json");
        });
    });
}

}  // namespace

void serve(const ServerOptions& options, const std::function<Json()>& data, const std::function<void(const std::string&)>& ready,
           const std::atomic<bool>& stop) {
    httplib::Server server;
    server.new_task_queue = [] { return new httplib::ThreadPool(4); };
    server.set_keep_alive_timeout(2);
    // Without this two servers could share a port, and each would get some of the requests.
    server.set_socket_options([](socket_t socket) {
        const int yes = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    if (options.host == "127.0.0.1" || options.host == "localhost") refuse_other_names(server);
    add_answers(server, data);
    const int port = options.port == 0                                 ? server.bind_to_any_port(options.host)
                     : server.bind_to_port(options.host, options.port) ? options.port
                                                                       : -1;
    require(port > 0,
            "cannot serve on {}:{}: the port is taken, or the address is not this machine's; choose another with --port or --host",
            options.host, options.port);
    std::atomic<bool> ended = false;
    std::thread listener([&] {
        server.listen_after_bind();
        ended = true;
    });
    ready(fmt::format("http://{}:{}/", options.host, port));
    while (!stop && !ended) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    server.stop();
    listener.join();
    require(stop, "the server at {}:{} ended by itself", options.host, port);
}

}  // namespace convoy
