// The file under several caches, as several processes would have them, and turns between threads. Needs no GPU.
#include "kernels/cuda/engine_cache.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

namespace convoy::cuda {
namespace {

namespace fs = std::filesystem;

class EngineCacheTest : public testing::Test {
  protected:
    void TearDown() override { fs::remove_all(folder_); }
    const fs::path folder_ = fs::temp_directory_path() / fmt::format("convoy-engines-{}", ::getpid());
    const std::string path_ = folder_ / "engines.json";
};

TEST_F(EngineCacheTest, RemembersFromRunToRun) {
    {
        EngineCache cache(path_);
        EXPECT_EQ(cache.find("p"), std::nullopt);
        cache.store("p", "engine 1");
        cache.store("p", "engine 2");
    }
    EXPECT_EQ(EngineCache(path_).find("p"), "engine 2");
}

TEST_F(EngineCacheTest, WhatOthersStoredMeanwhileStaysAndIsFound) {
    EngineCache first(path_), second(path_);
    first.store("p", "engine 1");
    second.store("q", "engine 2");
    EXPECT_EQ(second.find("p"), "engine 1");
    first.store("r", "engine 3");
    EXPECT_EQ(first.find("q"), "engine 2");
    EngineCache third(path_);
    for (const char* const problem : {"p", "q", "r"}) EXPECT_TRUE(third.find(problem)) << problem;
}

// What a run has chosen it keeps to, whatever another stores.
TEST_F(EngineCacheTest, AChoiceHoldsForTheWholeRun) {
    EngineCache first(path_), second(path_);
    first.store("p", "engine 1");
    second.store("p", "engine 2");
    first.store("q", "engine 3");
    EXPECT_EQ(first.find("p"), "engine 1");
    EXPECT_EQ(EngineCache(path_).find("p"), "engine 2");
}

TEST_F(EngineCacheTest, ManyWritersLoseNothing) {
    constexpr int kWriters = 8, kEach = 5;
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w)
        writers.emplace_back([&, w] {
            EngineCache cache(path_);
            for (int i = 0; i < kEach; ++i) cache.store(fmt::format("{} of {}", i, w), "engine");
        });
    for (auto& writer : writers) writer.join();
    EngineCache all(path_);
    for (int w = 0; w < kWriters; ++w)
        for (int i = 0; i < kEach; ++i) EXPECT_TRUE(all.find(fmt::format("{} of {}", i, w))) << i << " of " << w;
}

TEST_F(EngineCacheTest, ADamagedFileIsWrittenAnew) {
    fs::create_directories(folder_);
    for (const char* const text : {"", "{\"p\": \"eng", "{\"p\": 3}", "[1]"}) {
        write_file(path_, text);
        EngineCache cache(path_);
        EXPECT_EQ(cache.find("p"), std::nullopt);
        cache.store("q", "engine 1");
        EXPECT_EQ(EngineCache(path_).find("q"), "engine 1");
    }
}

TEST_F(EngineCacheTest, WithoutAPlaceToWriteItRemembersForTheRun) {
    for (const char* const path : {"", "/dev/full/engines.json"}) {
        EngineCache cache(path);
        cache.store("p", "engine 1");
        EXPECT_EQ(cache.find("p"), "engine 1");
    }
}

TEST_F(EngineCacheTest, IsWrittenOnceForATurn) {
    EngineCache cache(path_);
    {
        const EngineCache::Turn outer(cache);
        {
            const EngineCache::Turn inner(cache);
            cache.store("p", "engine 1");
        }
        EXPECT_FALSE(fs::exists(path_));
        EXPECT_EQ(cache.find("p"), "engine 1");
    }
    EXPECT_EQ(EngineCache(path_).find("p"), "engine 1");
}

// Threads of one process, which have one cache, and processes, which have their own over one file.
class EngineCacheTurns : public EngineCacheTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(ThreadsAndProcesses, EngineCacheTurns, testing::Bool());

TEST_P(EngineCacheTurns, WhoeverAsksForTheSameMeasuresOnce) {
    EngineCache shared(path_);
    std::atomic<int> measured = 0;
    std::vector<std::string> chosen(8);
    std::vector<std::thread> ranks;
    for (std::string& mine : chosen)
        ranks.emplace_back([&] {
            std::optional<EngineCache> own;
            EngineCache& cache = GetParam() ? own.emplace(path_) : shared;
            const EngineCache::Turn turn(cache);
            if (!cache.find("p")) {
                const int number = measured++;
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                cache.store("p", fmt::format("engine {}", number));
            }
            mine = cache.find("p").value();
        });
    for (auto& rank : ranks) rank.join();
    EXPECT_EQ(measured, 1);
    for (const std::string& each : chosen) EXPECT_EQ(each, "engine 0");
}

}  // namespace
}  // namespace convoy::cuda
