// TCP sockets with time limits. Internal to this module.
#pragma once

#include <string>
#include <utility>

#include "comm/transport.h"

namespace convoy {

// A descriptor that is closed in the end.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    ~Socket() { close(); }
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        close();
        descriptor_ = std::exchange(other.descriptor_, -1);
        return *this;
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int get() const { return descriptor_; }
    explicit operator bool() const { return descriptor_ >= 0; }
    void close();

  private:
    int descriptor_ = -1;
};

struct Listener {
    Socket socket;
    std::string address;
    int port = 0;
};
// Listens at this numeric address, at a port that is free. Error says why it cannot.
Listener listen_at(const std::string& address);
// The next one to connect; an empty socket when the deadline passed.
Socket accept_from(const Listener& listener, Deadline deadline);
// Empty when nobody answers.
Socket connect_to(const std::string& address, int port, Deadline deadline);
// Two ends of one connection.
std::pair<Socket, Socket> connected_pair();

// A text in one piece. False when the other end is gone, the deadline passed, or what comes is no text of at most a MiB.
bool send_text(const Socket& socket, const std::string& text, Deadline deadline);
bool receive_text(const Socket& socket, std::string& text, Deadline deadline);

// Moves as many bytes as go without waiting: -1 when the other end is gone. `more` says that others follow at once and may share a packet with these.
int64_t write_some(const Socket& socket, const std::byte* data, size_t bytes, bool more = false);
int64_t read_some(const Socket& socket, std::byte* data, size_t bytes);

// Bytes that were written and not acknowledged yet.
size_t unacknowledged(const Socket& socket);
// What it sends goes before what waits in the system's queue already, where that queue knows priorities, as Linux's pfifo_fast does.
void make_urgent(const Socket& socket);

// Who waits for the socket is woken when so many bytes can be read, or as many as the system holds at most.
void wake_at(const Socket& socket, size_t bytes);

}  // namespace convoy
