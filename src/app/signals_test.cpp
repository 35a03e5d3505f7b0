#include "app/signals.h"

#include <csignal>

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(StopSignals, AskToStopOnce) {
    const StopSignals signals("");
    EXPECT_FALSE(signals.stop());
    std::raise(SIGINT);
    EXPECT_TRUE(signals.stop());
    EXPECT_EQ(signals.exit_code(), 130);
}

// A kernel may use the stack pointer for other things while a signal comes.
TEST(StopSignals, AreHandledOnAStackOfTheirOwn) {
    const StopSignals signals("");
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) {
        struct sigaction action {};
        ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
        EXPECT_NE(action.sa_flags & SA_ONSTACK, 0) << signal;
    }
    stack_t stack{};
    ASSERT_EQ(sigaltstack(nullptr, &stack), 0);
    EXPECT_EQ(stack.ss_flags & SS_DISABLE, 0);
    EXPECT_GE(stack.ss_size, 32u * 1024);
}

}  // namespace
}  // namespace convoy
