// Ctrl-C while a command works: the first asks it to end cleanly, the second ends the process at once.
#pragma once

#include <atomic>
#include <string>

namespace convoy {

// Catches SIGINT and SIGTERM while it lives, and what comes when a terminal (SIGHUP) or the reader of standard output (SIGPIPE) goes away. One at
// a time.
class StopSignals {
  public:
    // `notice` is written to standard error at the first signal; nothing when it is empty.
    explicit StopSignals(const std::string& notice);
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    const std::atomic<bool>& stop() const;
    // What a shell expects of a process that a signal ended: 130 for Ctrl-C.
    int exit_code() const;
};

}  // namespace convoy
