#include "base/file.h"

#include <chrono>
#include <thread>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

class FileTest : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(dir_); }
    void TearDown() override { std::filesystem::remove_all(dir_); }
    size_t entries() const {
        return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir_), std::filesystem::directory_iterator()));
    }
    std::filesystem::path dir_ = std::filesystem::path(testing::TempDir()) / "convoy_file_test";
};

TEST_F(FileTest, WritesAndReads) {
    const std::string text = std::string("a\0b", 3) + std::string(200000, 'x');
    write_file(dir_ / "a", text);
    EXPECT_EQ(read_file(dir_ / "a"), text);
    EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, WithoutCommitTheOldFileStays) {
    write_file(dir_ / "a", "old");
    {
        AtomicFile file(dir_ / "a");
        file.write("new");
    }
    EXPECT_EQ(read_file(dir_ / "a"), "old");
    EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, ALinkStaysAndTheFileBehindItIsReplaced) {
    write_file(dir_ / "a", "old");
    std::filesystem::create_symlink("a", dir_ / "link");
    write_file(dir_ / "link", "new");
    EXPECT_TRUE(std::filesystem::is_symlink(dir_ / "link"));
    EXPECT_EQ(read_file(dir_ / "a"), "new");
    EXPECT_EQ(entries(), 2u);
}

TEST_F(FileTest, APipeIsWrittenToAndNotReplaced) {
    const auto pipe = dir_ / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    expect_writable(pipe);  // does not wait for a reader
    std::string got;
    std::thread reader([&] { got = read_file(pipe); });
    write_file(pipe, "through");
    reader.join();
    EXPECT_EQ(got, "through");
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
    EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, WhatCannotBeWrittenIsSaidBefore) {
    expect_writable(dir_ / "new");
    EXPECT_EQ(entries(), 0u);
    write_file(dir_ / "a", "old");
    expect_writable(dir_ / "a");
    EXPECT_EQ(read_file(dir_ / "a"), "old");
    EXPECT_THROW(expect_writable(dir_), Error);
    EXPECT_THROW(expect_writable(dir_ / "missing" / "x"), Error);
}

TEST_F(FileTest, ManyWhoUpdateAFileLoseNothing) {
    constexpr int kThreads = 8, kEach = 20;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < kEach; ++i)
                update_file(dir_ / "in" / "a", [](const std::optional<std::string>& held) { return held.value_or("") + "x"; });
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(read_file(dir_ / "in" / "a"), std::string(kThreads * kEach, 'x'));
}

TEST_F(FileTest, WhatAnUpdateLeavesAsItIsIsNotWritten) {
    write_file(dir_ / "a", "old");
    const auto before = std::filesystem::last_write_time(dir_ / "a");
    std::filesystem::last_write_time(dir_ / "a", before - std::chrono::hours(1));
    update_file(dir_ / "a", [](const std::optional<std::string>& held) { return held.value(); });
    EXPECT_EQ(std::filesystem::last_write_time(dir_ / "a"), before - std::chrono::hours(1));
    EXPECT_THROW(update_file("/dev/full/x", [](const std::optional<std::string>&) { return "x"; }), Error);
}

TEST_F(FileTest, WhatCannotBeDoneIsAnError) {
    EXPECT_THROW(write_file(dir_, "x"), Error);

    EXPECT_THROW(write_file("/dev/full/x", "x"), Error);
    EXPECT_THROW(read_file(dir_ / "missing"), Error);
    EXPECT_THROW(read_file(dir_), Error);
}

TEST_F(FileTest, ALockIsWaitedForNoLongerThanTheLimit) {
    const auto path = dir_ / "deep" / "a.lock";
    {
        const FileLock first(path);
        EXPECT_TRUE(first.held());
        EXPECT_FALSE(FileLock(path, std::chrono::milliseconds(20)).held());
    }
    EXPECT_TRUE(FileLock(path, std::chrono::milliseconds(20)).held());
    EXPECT_THROW(FileLock("/dev/full/a.lock"), Error);
}

}  // namespace
}  // namespace convoy
