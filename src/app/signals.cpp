#include "app/signals.h"

#include <array>
#include <csignal>
#include <cstddef>

#include <unistd.h>

#include "base/error.h"

namespace convoy {

namespace {

// A signal handler has no argument of ours, so what it touches must be static.
std::atomic<bool> stop_asked{false};
std::atomic<int> caught{0};
std::array<char, 256> notice_text{};
std::atomic<size_t> notice_size{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
    if (stop_asked.exchange(true)) {
        if (signal == SIGPIPE) return;  // every line that nobody reads brings one
        _exit(128 + signal);
    }
    caught = signal;
    // Nothing can be done here about a terminal that is gone.
    [[maybe_unused]] const auto written = write(STDERR_FILENO, notice_text.data(), notice_size);
}

// Kernels of libraries use the stack pointer for other things at times; a handler on their stack would then write into the middle of somebody's memory. So it has a
// stack of its own. Signals to the process come to its first thread, which calls this.
alignas(16) std::array<std::byte, 64 * 1024> handler_stack;
void use_own_stack() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0) return;  // there is one
    const stack_t own{.ss_sp = handler_stack.data(), .ss_flags = 0, .ss_size = handler_stack.size()};
    sigaltstack(&own, nullptr);
}

void handle(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaction(signal, &action, nullptr);
    struct sigaction now {};
    if (sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup ignores it
}

}  // namespace

StopSignals::StopSignals(const std::string& notice) {
    const std::string text = notice.empty() ? "" : "\n" + notice + "\n";
    CONVOY_CHECK(text.size() <= notice_text.size(), "a notice of {} characters", text.size());
    text.copy(notice_text.data(), text.size());
    notice_size = text.size();
    stop_asked = false;
    caught = 0;
    use_own_stack();
    handle(on_signal);
}

StopSignals::~StopSignals() { handle(SIG_DFL); }

const std::atomic<bool>& StopSignals::stop() const { return stop_asked; }

int StopSignals::exit_code() const { return 128 + caught; }

}  // namespace convoy
