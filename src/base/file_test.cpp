#include "base/file.h"

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

TEST_F(FileTest, WhatCannotBeDoneIsAnError) {
    EXPECT_THROW(write_file("/dev/full/x", "x"), Error);
    EXPECT_THROW(read_file(dir_ / "missing"), Error);
    EXPECT_THROW(read_file(dir_), Error);
}

}  // namespace
}  // namespace convoy
