// For the tests of this folder: a directory of files, what an error says, and damaged files.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/test_count.h"

namespace convoy {

// A fresh directory for each test, removed afterwards.
class DataFilesTest : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(dir_); }
    void TearDown() override { std::filesystem::remove_all(dir_); }

    std::filesystem::path put(const std::string& name, const std::string& bytes) const {
        write_file(dir_ / name, bytes);
        return dir_ / name;
    }
    // For files that are written thousands of times: neither atomic nor durable, and so much faster.
    std::filesystem::path put_quickly(const std::string& name, std::string_view bytes) const;

    // Every prefix of the file must be refused; with bytes changed, it must be read or refused. Neither may do anything but throw Error.
    void expect_damage_is_refused(const std::string& bytes, const std::function<void(const std::filesystem::path&)>& read) const;

    std::filesystem::path dir_ =
        std::filesystem::path(testing::TempDir()) /
        fmt::format("convoy_data_{}_{}", testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
};

// What `action` throws as Error; "" when it throws nothing.
template <class F>
std::string error_of(F&& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

// The message has all these parts.
inline void expect_parts(const std::string& message, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" is not in \"" << message << "\"";
}

inline std::filesystem::path DataFilesTest::put_quickly(const std::string& name, std::string_view bytes) const {
    const auto path = dir_ / name;
    std::filesystem::remove(path);  // some file systems flush a file that is cut and written again
    std::FILE* file = std::fopen(path.c_str(), "wb");
    EXPECT_NE(file, nullptr);
    EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
    EXPECT_EQ(std::fclose(file), 0);
    return path;
}

inline void DataFilesTest::expect_damage_is_refused(const std::string& bytes,
                                                    const std::function<void(const std::filesystem::path&)>& read) const {
    for (size_t length = 0; length < bytes.size(); ++length)
        EXPECT_THROW(read(put_quickly("damaged", std::string_view(bytes).substr(0, length))), Error)
            << "the first " << length << " of " << bytes.size();
    EXPECT_THROW(read(put_quickly("damaged", bytes + '\0')), Error);
    const RandomStream random{11, 0, stream_of("damage")};
    int refused = 0;
    const auto rounds = static_cast<uint64_t>(test_count(500, 5000));
    for (uint64_t round = 0; round < rounds; ++round) {
        std::string changed = bytes;
        for (uint64_t flip = 0; flip <= round % 3; ++flip) {
            const uint32_t where = random.bits(8 * round + 2 * flip), what = random.bits(8 * round + 2 * flip + 1);
            char& byte = changed[where % changed.size()];
            byte = static_cast<char>(what % 2 ? byte ^ (1 << (what / 2 % 8)) : what / 2 % 256);
        }
        const auto path = put_quickly("damaged", changed);
        EXPECT_NO_THROW({
            try {
                read(path);
            } catch (const Error&) {
                ++refused;
            }
        }) << "round "
           << round;
    }
    EXPECT_GT(refused, 0);
}

}  // namespace convoy
