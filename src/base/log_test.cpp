#include "base/log.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Log, WarnsOnceAboutASubject) {
    testing::internal::CaptureStderr();
    for (const char* const subject : {"one", "other", "one"}) warn_once(subject, "about {}", subject);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: about one\nwarning: about other\n");
}

}  // namespace
}  // namespace convoy
