#include "comm/socket/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/pkt_sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace convoy {

namespace {

constexpr uint32_t kLongestText = 1 << 20;

sockaddr_in place_of(const std::string& address, int port) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<uint16_t>(port));
    require(inet_pton(AF_INET, address.c_str(), &place.sin_addr) == 1, "\"{}\" is no address; expected one such as 192.168.1.7", address);
    return place;
}

void prepare(const Socket& socket) {
    fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
    const int yes = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));  // fails on what is no TCP, where it is not needed
}

// Until something can be read or written; false when the deadline passed.
bool wait_for(const Socket& socket, int16_t events, Deadline deadline) {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left < 0) return false;
        pollfd poller{socket.get(), events, 0};
        const int ready = ::poll(&poller, 1, static_cast<int>(std::min<int64_t>(left + 1, 60000)));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

template <class Bytes, class Step>
bool all_of(const Socket& socket, Bytes* data, size_t bytes, int16_t events, Deadline deadline, const Step& step) {
    for (size_t at = 0; at < bytes;) {
        const int64_t moved = step(socket, data + at, bytes - at);
        if (moved < 0) return false;
        at += static_cast<size_t>(moved);
        if (moved == 0 && !wait_for(socket, events, deadline)) return false;
    }
    return true;
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

void Socket::close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
}

Listener listen_at(const std::string& address) {
    sockaddr_in place = place_of(address, 0);
    Listener listener{Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), address, 0};
    socklen_t length = sizeof(place);
    const bool listens = listener.socket && ::bind(listener.socket.get(), reinterpret_cast<sockaddr*>(&place), length) == 0 &&
                         ::listen(listener.socket.get(), SOMAXCONN) == 0 &&
                         ::getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&place), &length) == 0;
    require(listens, "cannot listen at {}: {}", address, std::strerror(errno));
    listener.port = ntohs(place.sin_port);
    prepare(listener.socket);
    return listener;
}

Socket accept_from(const Listener& listener, Deadline deadline) {
    while (wait_for(listener.socket, POLLIN, deadline)) {
        Socket socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket) continue;  // whoever it was has gone again
        prepare(socket);
        return socket;
    }
    return Socket();
}

Socket connect_to(const std::string& address, int port, Deadline deadline) {
    const sockaddr_in place = place_of(address, port);
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    require(static_cast<bool>(socket), "cannot make a socket: {}", std::strerror(errno));
    prepare(socket);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0 && errno != EINPROGRESS) return Socket();
    if (!wait_for(socket, POLLOUT, deadline)) return Socket();
    int fault = 0;
    socklen_t length = sizeof(fault);
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &fault, &length);
    return fault == 0 ? std::move(socket) : Socket();
}

std::pair<Socket, Socket> connected_pair() {
    int ends[2] = {-1, -1};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "cannot make a pair of sockets: {}", std::strerror(errno));
    std::pair<Socket, Socket> pair{Socket(ends[0]), Socket(ends[1])};
    prepare(pair.first);
    prepare(pair.second);
    return pair;
}

int64_t write_some(const Socket& socket, const std::byte* data, size_t bytes, bool more) {
    const ssize_t moved = ::send(socket.get(), data, bytes, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (moved >= 0) return moved;
    return would_wait() ? 0 : -1;
}

int64_t read_some(const Socket& socket, std::byte* data, size_t bytes) {
    const ssize_t moved = ::recv(socket.get(), data, bytes, 0);
    if (moved > 0) return moved;
    return moved < 0 && would_wait() ? 0 : -1;
}

size_t unacknowledged(const Socket& socket) {
    int bytes = 0;
    return ::ioctl(socket.get(), TIOCOUTQ, &bytes) == 0 ? static_cast<size_t>(std::max(0, bytes)) : 0;
}

void make_urgent(const Socket& socket) {
    const int interactive = TC_PRIO_INTERACTIVE;
    setsockopt(socket.get(), SOL_SOCKET, SO_PRIORITY, &interactive, sizeof(interactive));  // where it fails, it goes as the others do
}

void wake_at(const Socket& socket, size_t bytes) {
    const int least = static_cast<int>(std::clamp<size_t>(bytes, 1, size_t{1} << 20));
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));  // where it fails, a wait ends too early, and goes on
}

bool send_text(const Socket& socket, const std::string& text, Deadline deadline) {
    const auto length = static_cast<uint32_t>(text.size());
    const auto write_all = [](const Socket& to, const std::byte* data, size_t bytes) { return write_some(to, data, bytes); };
    return all_of(socket, reinterpret_cast<const std::byte*>(&length), sizeof(length), POLLOUT, deadline, write_all) &&
           all_of(socket, reinterpret_cast<const std::byte*>(text.data()), text.size(), POLLOUT, deadline, write_all);
}

bool receive_text(const Socket& socket, std::string& text, Deadline deadline) {
    uint32_t length = 0;
    if (!all_of(socket, reinterpret_cast<std::byte*>(&length), sizeof(length), POLLIN, deadline, read_some) || length > kLongestText)
        return false;
    text.resize(length);
    return all_of(socket, reinterpret_cast<std::byte*>(text.data()), text.size(), POLLIN, deadline, read_some);
}

}  // namespace convoy
