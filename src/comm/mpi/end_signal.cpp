#include "comm/mpi/end_signal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "comm/mpi/time_limit.h"

namespace convoy {

namespace {

constexpr auto kLongest = std::chrono::seconds(2);  // that a report may keep the process from ending

sigset_t term() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return set;
}

bool has_handler() {
    struct sigaction now {};
    return sigaction(SIGTERM, nullptr, &now) == 0 && now.sa_handler != SIG_DFL;
}

// What the signal does where nobody holds it.
void deliver() {
    const sigset_t set = term();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    std::raise(SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

HeldSignal::HeldSignal() {
    const sigset_t set = term();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
}

HeldSignal::~HeldSignal() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

EndSignal::EndSignal(std::function<void()> report) : report_(std::move(report)) {
    const sigset_t set = term();
    signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
    stop_ = ::eventfd(0, EFD_CLOEXEC);
    require(signals_ >= 0 && stop_ >= 0, "cannot wait for signals: {}", std::strerror(errno));
    thread_ = std::thread([this] { loop(); });
}

EndSignal::~EndSignal() {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_, &one, sizeof(one));
    thread_.join();
    ::close(signals_);
    ::close(stop_);
}

void EndSignal::loop() {
    for (;;) {
        std::array<pollfd, 2> lines{pollfd{signals_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
        if (::poll(lines.data(), lines.size(), -1) < 0 && errno != EINTR) return;
        if (lines[1].revents != 0) return;
        signalfd_siginfo came{};
        if (lines[0].revents == 0 || ::read(signals_, &came, sizeof(came)) != sizeof(came)) continue;
        const bool handled = has_handler();
        if (handled) {
            deliver();
            report_();
        } else {
            const TimeLimit guard(kLongest, deliver);
            report_();
            deliver();
        }
    }
}

}  // namespace convoy
