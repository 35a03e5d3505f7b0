// The cache under many writers, and the tuner on a backend whose kernels' speeds are known.
#include <atomic>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "comm/thread_world.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/key.h"
#include "program/plan_spec.h"
#include "tune/tuner.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

class Folder {
  public:
    Folder() : path_(fs::temp_directory_path() / fmt::format("convoy-tune-{}", ::getpid())) { fs::create_directories(path_); }
    ~Folder() { fs::remove_all(path_); }
    fs::path operator/(const std::string& name) const { return path_ / name; }

  private:
    fs::path path_;
};

CostTable table_of(const std::string& problem, double seconds) {
    CostTable table;
    table.kernels[problem]["fast"] = seconds;
    table.copies["copy " + problem] = seconds / 2;
    table.verdicts[problem] = {2 * seconds, seconds};
    return table;
}

const CostSetting kHere{"cpu", 2, "this processor; library 1.0"};

// What is written to standard error meanwhile.
template <class F>
std::string heard(F&& body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
}

TEST(CostCache, KeepsWhatItWasGivenAndWhatItHad) {
    const Folder folder;
    const CostCache cache(folder / "a" / "kernels.json", kHere);
    EXPECT_EQ(heard([&] { EXPECT_EQ(cache.read(), CostTable()); }), "");
    cache.add(table_of("p", 1));
    cache.add(table_of("q", 2));
    CostTable changed = table_of("p", 5);
    const CostTable all = cache.add(changed);
    EXPECT_EQ(all.kernels.at("p").at("fast"), 1);  // choices that were made from it stay
    EXPECT_EQ(all.kernels.at("q").at("fast"), 2);
    EXPECT_EQ(cache.read(), all);
}

TEST(CostCache, WhatDoesNotFitIsIgnoredWithOneLine) {
    const Folder folder;
    const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
    const CostCache cache(folder / "kernels.json", kHere);
    cache.add(table_of("p", 1));
    const std::string whole = read_file(cache.path());

    CostSetting elsewhere = kHere;
    elsewhere.machine = "another processor; library 1.0";
    std::string text = heard([&] { EXPECT_EQ(CostCache(cache.path(), elsewhere).read(), CostTable()); });
    EXPECT_EQ(lines(text), 1);
    EXPECT_NE(text.find("another processor"), std::string::npos) << text;

    for (const size_t length : {whole.size() / 2, size_t{1}, size_t{0}}) {
        write_file(cache.path(), whole.substr(0, length));
        text = heard([&] { EXPECT_EQ(cache.read(), CostTable()); });
        EXPECT_EQ(lines(text), 1) << length;
        EXPECT_NE(text.find("is ignored"), std::string::npos) << text;
    }
    write_file(cache.path(), "{\"format\": 1, \"machine\": \"this processor; library 1.0\", \"threads\": 2, \"kernels\": {\"p\": 3}}");
    EXPECT_EQ(lines(heard([&] { EXPECT_EQ(cache.read(), CostTable()); })), 1);
    cache.add(table_of("q", 2));  // and it is good again
    EXPECT_EQ(cache.read(), table_of("q", 2));
}

TEST(CostCache, ManyWritersLoseNothing) {
    const Folder folder;
    constexpr int kWriters = 8, kEach = 5;
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w)
        writers.emplace_back([&, w] {
            const CostCache cache(folder / "kernels.json", kHere);
            for (int i = 0; i < kEach; ++i) cache.add(table_of(fmt::format("{} of {}", i, w), 1 + i));
        });
    for (auto& writer : writers) writer.join();
    const CostTable all = CostCache(folder / "kernels.json", kHere).read();
    EXPECT_EQ(all.kernels.size(), static_cast<size_t>(kWriters * kEach));
}

TEST(MeasuredCosts, TakeEstimatesWhereNothingWasMeasured) {
    auto table = std::make_shared<CostTable>();
    const TensorDesc x = TensorDesc::whole({4, 8}, DType::f32);
    const Problem relu = Problem::single(UnaryOp{}, {x}, {x}, DType::f32);
    const auto candidate = [](const std::string& name, double seconds) {
        return Candidate{.algorithm = name, .inputs = {Layout::plain()}, .outputs = {Layout::plain()}, .seconds = seconds};
    };
    const auto backend = make_backend("reference", {});
    EXPECT_EQ(MeasuredCosts(table, backend->target().copy_bytes_per_second()).seconds(relu, candidate("a", 3)), 3);
    table->kernels[key_of(relu)][key_of(candidate("a", 0))] = 0.5;
    table->kernels[key_of(relu)][key_of(candidate("b", 0))] = 2;
    const MeasuredCosts costs(table, backend->target().copy_bytes_per_second());
    EXPECT_EQ(costs.seconds(relu, candidate("a", 3)), 0.5);
    EXPECT_EQ(costs.seconds(relu, candidate("left out", 1)), 2);
    const CopyProblem copy{.shape = {4, 8}, .to = Layout::channels_last(2)};
    table->copies[key_of(copy)] = 7;
    EXPECT_EQ(costs.copy_seconds(copy), 7);
    // A run that goes on reads them again, and must choose as before.
    const CopyProblem other{.shape = {400, 8}, .to = Layout::channels_last(2)};
    const MeasuredCosts weighed(table, 3e9, 4), again = measured_costs_from_json(to_json(weighed));
    for (const CopyProblem& each : {copy, other}) EXPECT_EQ(again.copy_seconds(each), weighed.copy_seconds(each));
    EXPECT_EQ(weighed.copy_seconds(copy), 28);
    EXPECT_EQ(again.table(), weighed.table());
    EXPECT_THROW(measured_costs_from_json(to_json(*table)), Error);
}

Graph small_training() {
    Builder b(Mode::Training);
    ValueId x = b.input({8, 3, 12, 12});
    x = b.relu("relu1", b.conv("conv1", x, {.filters = 16, .kernel = {3, 3}}));
    x = b.relu("relu2", b.conv("conv2", x, {.filters = 16, .kernel = {3, 3}}));
    x = b.linear("fc", b.flatten("flatten", x), {.outputs = 5});
    b.graph().add_output("output", x);
    return training_graph({"small", b.take(), {{.output = "output"}}, 5}, {});
}

bool cpu_ready() {
    for (const BackendStatus& status : backend_statuses())
        if (status.name == "cpu") return status.ready;
    return false;
}

TuneOptions quick(const fs::path& cache) {
    return {.session = {.backend = "cpu"}, .cache = CostCache(cache, kHere), .measure = {.rounds = 1, .seconds = 0}, .race_seconds = 0};
}

TEST(Tuner, MeasuresOnceAndThenKnows) {
    if (!cpu_ready()) GTEST_SKIP() << "no cpu backend";
    const Folder folder;
    const Graph graph = small_training();
    const Tuning first = tune(graph, quick(folder / "kernels.json"));
    EXPECT_GT(first.measured, 0);
    EXPECT_EQ(first.known, 0);
    EXPECT_FALSE(first.choices.empty());
    for (const TunedChoice& c : first.choices) EXPECT_LE(c.tuned_seconds, 1.0) << c.problem;
    const Tuning second = tune(graph, quick(folder / "kernels.json"));
    EXPECT_EQ(second.measured, 0);
    EXPECT_GT(second.known, 0);
    EXPECT_EQ(second.verdict, first.verdict);
    EXPECT_EQ(second.costs != nullptr, first.costs != nullptr);
}

TEST(Tuner, EightRanksAgree) {
    if (!cpu_ready()) GTEST_SKIP() << "no cpu backend";
    const Folder folder;
    const Graph graph = small_training();
    constexpr int kRanks = 8;
    std::vector<Tuning> results(kRanks);
    ThreadWorld world(kRanks);
    run_ranks(world, [&](Transport& transport) {
        Link link(transport);
        TuneOptions options = quick(folder / "kernels.json");
        if (transport.rank() > 0) options.cache.reset();
        options.session.plan = plan_from_spec("sample:8", kRanks, graph).plan;
        options.session.link = &link;
        results[static_cast<size_t>(transport.rank())] = tune(graph, options);
    });
    for (const Tuning& t : results) {
        EXPECT_EQ(*t.table, *results[0].table);
        EXPECT_EQ(t.verdict, results[0].verdict);
        EXPECT_EQ(t.costs != nullptr, results[0].costs != nullptr);
    }
}

}  // namespace
}  // namespace convoy
