// From files to what is shown: what is read, what is left out, what is refused.
#include "report/report.h"
#include "base/json.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/page.h"
#include "report/views.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

class Folder {
  public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "convoy-report-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const fs::path& path() const { return path_; }
    void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }

  private:
    fs::path path_;
};

std::string error_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

void write_run(const Folder& folder) {
    folder.write("config.json",
                 R"({"model": "lenet5", "data": {"name": "mnist"}, "epochs": 2, "batch": 64, "ranks": 2, "plan": "sample:2"})");
    folder.write(
        "metrics.jsonl",
        "{\"kind\":\"step\",\"step\":50,\"epoch\":1,\"loss\":0.9,\"accuracy\":0.7,\"lr\":0.01,\"samples_per_s\":6400}\n"
        "{\"kind\":\"step\",\"step\":100,\"epoch\":1,\"loss\":0.5,\"accuracy\":0.8,\"lr\":0.01,\"samples_per_s\":6000}\n"
        "{\"kind\":\"epoch\",\"step\":110,\"epoch\":1,\"loss\":0.6,\"test_loss\":0.4,\"test_accuracy\":0.9,\"samples_per_s\":6400}\n"
        "{\"kind\":\"step\",\"st");
}

Trace trace_of(double scale, int ranks = 2) {
    Trace trace{.queues = {"compute", "activation", "gradient", "host"}};
    for (int rank = 0; rank < ranks; ++rank) {
        trace.events.push_back({.layer = "conv1",
                                .what = "conv 5x5",
                                .phase = "forward",
                                .rank = rank,
                                .queue = 0,
                                .step = 3,
                                .begin_us = 100,
                                .duration_us = 40 * scale});
        trace.events.push_back({.layer = "conv1",
                                .what = "all_reduce",
                                .phase = "backward",
                                .rank = rank,
                                .queue = 2,
                                .step = 3,
                                .begin_us = 120,
                                .duration_us = 80 * scale,
                                .sent = 1000});
        trace.events.push_back({.layer = "fc",
                                .what = "update",
                                .phase = "update",
                                .rank = rank,
                                .queue = 0,
                                .step = 3,
                                .begin_us = 100 + 100 * scale,
                                .duration_us = 10 * scale});
        trace.events.push_back(
            {.layer = "fc", .what = "update", .phase = "update", .rank = rank, .queue = 0, .step = 2, .begin_us = 0, .duration_us = 10});
    }
    return trace;
}

TEST(Report, OfARun) {
    const Folder folder;
    write_run(folder);
    folder.write("trace.json", chrome_trace(trace_of(1)).dump());
    folder.write("placement.json", R"({"grids": [{"axes": [{"name": "sample", "size": 2}], "ranks": [0, 1]}],
        "layers": [{"layer": "conv1", "kind": "conv 5x5", "from": [], "output": "samples/2"}], "ranks": [{"arena_bytes": 10, "state_bytes": 5}, {"arena_bytes": 12, "state_bytes": 5}]})");
    const ReportData data = read_report(folder.path());
    EXPECT_EQ(data.kind, "run");
    EXPECT_EQ(data.title, "lenet5 on mnist");
    EXPECT_EQ(data.state, ReportData::State::Stopped);
    EXPECT_EQ(data.status, "stopped after 1 of 2 epochs, step 110");
    ASSERT_EQ(data.curves.size(), 4U);
    EXPECT_EQ(data.curves[0].series[0].points, (std::vector<std::pair<double, double>>{{50, 0.9}, {100, 0.5}}));
    EXPECT_EQ(data.curves[0].series[1].points, (std::vector<std::pair<double, double>>{{110, 0.4}}));
    ASSERT_TRUE(data.timeline);
    const TimelineTrack& track = data.timeline->tracks.at(0);
    EXPECT_EQ(track.events.size(), 6U);  // of the last step alone
    EXPECT_DOUBLE_EQ(track.span_us, 110);
    EXPECT_DOUBLE_EQ(track.ranks[1].parts.forward_us, 40);
    EXPECT_DOUBLE_EQ(track.ranks[1].parts.waiting_us, 60);
    EXPECT_DOUBLE_EQ(track.ranks[1].parts.idle_us, 0);
    ASSERT_TRUE(data.plan);
    EXPECT_EQ(data.plan->grids.at(0).size, 2);
    EXPECT_FALSE(data.memory || data.scaling || data.comparison);
    EXPECT_EQ(data.figures.back().value, 17);  // the rank that holds most
}

TEST(Report, PredictedBesideMeasured) {
    const Folder folder;
    write_run(folder);
    folder.write("trace.json", chrome_trace(trace_of(1)).dump());
    fs::create_directory(folder.path() / "prediction");
    folder.write("prediction/simulation.json", Json{{"points", {{{"ranks", 1}, {"step_ms", 19}}, {{"ranks", 2}, {"step_ms", 11}}}}}.dump());
    folder.write("prediction/trace.json", chrome_trace(trace_of(0.9)).dump());
    const ReportData data = read_report(folder.path());
    ASSERT_TRUE(data.comparison);
    EXPECT_EQ(data.comparison->totals[0].measured, 10);  // 64 samples at 6400 in a second
    EXPECT_EQ(data.comparison->totals[0].predicted, 11);
    ASSERT_EQ(data.comparison->layers.size(), 2U);
    EXPECT_EQ(data.comparison->layers[0].layer, "conv1");
    EXPECT_DOUBLE_EQ(data.comparison->layers[0].measured_us, 40);
    EXPECT_DOUBLE_EQ(data.comparison->layers[0].predicted_us, 36);
    EXPECT_EQ(data.timeline->tracks.size(), 2U);
}

TEST(Report, OfASimulation) {
    Json points = Json::array();
    for (const int ranks : {1, 4, 2})
        points.push_back({{"ranks", ranks}, {"batch", 64}, {"step_ms", 100.0 / ranks * (ranks == 4 ? 2 : 1)}, {"joules", 0}});
    points[1]["classes"] = {{{"ranks", 3}, {"first", 0}, {"step_ms", 50}, {"waiting_ms", 7}},
                            {{"ranks", 1}, {"first", 3}, {"step_ms", 40}, {"waiting_ms", 20}}};
    points.push_back({{"ranks", 8}, {"failure", "cannot be divided"}});
    const ReportData data =
        report_of(SimulationSources{.document = {{"model", "vgg16"}, {"machine", "v100"}, {"points", points}}, .trace = trace_of(1)});
    ASSERT_TRUE(data.scaling);
    const auto& line = data.scaling->series[0].points;
    EXPECT_EQ(line[1].ranks, 2);
    EXPECT_DOUBLE_EQ(*line[1].efficiency, 1);
    EXPECT_DOUBLE_EQ(*line[2].efficiency, 0.5);
    EXPECT_DOUBLE_EQ(*line[2].waiting_ms, 7);
    EXPECT_FALSE(line[2].joules);
    EXPECT_EQ(line[3].failure, "cannot be divided");
    EXPECT_FALSE(line[3].efficiency);
    EXPECT_EQ(data.notes.at(0), "at 8 ranks: cannot be divided");
    EXPECT_EQ(data.scaling->ideal.size(), 3U);
    EXPECT_DOUBLE_EQ(*data.scaling->ideal[2].step_ms, 25);
    EXPECT_EQ(data.timeline->tracks[0].name, "predicted");
}

TEST(Report, RefusesWhatIsNoRun) {
    const Folder folder;
    const auto read = [&] { return read_report(folder.path()); };
    EXPECT_NE(error_of(read).find("is no run directory: it holds no config.json"), std::string::npos) << error_of(read);
    write_run(folder);
    fs::remove(folder.path() / "metrics.jsonl");
    EXPECT_NE(error_of(read).find("has no metrics"), std::string::npos) << error_of(read);
    folder.write("metrics.jsonl", "{\"kind\":\"step\",\"step\":1}\nnot json\n{}\n");
    EXPECT_NE(error_of(read).find("metrics.jsonl: line 2 is no JSON object: not json"), std::string::npos) << error_of(read);
    folder.write("metrics.jsonl", "");
    EXPECT_EQ(read_report(folder.path()).notes.size(), 1U);
    folder.write("trace.json", "{");
    EXPECT_NE(error_of(read).find("trace.json: expected JSON"), std::string::npos) << error_of(read);
    EXPECT_NE(error_of([&] { read_report(folder.path() / "none.json"); }).find("does not exist"), std::string::npos);
    EXPECT_NE(error_of([&] { read_report(folder.path() / "config.json"); }).find("is no simulation"), std::string::npos);
}

TEST(Report, ManyRanksAndPointsStaySmall) {
    std::vector<Json> metrics;
    for (int step = 1; step <= 50'000; ++step)
        metrics.push_back({{"kind", "step"}, {"step", step}, {"loss", step == 31'234 ? 99.0 : 1.0 / step}});
    const auto curves = curves_of(metrics);
    const auto& points = curves.at(0).series.at(0).points;
    EXPECT_LE(points.size(), 1300U);
    EXPECT_EQ(std::count_if(points.begin(), points.end(), [](const auto& p) { return p.second == 99; }), 1);  // a spike is kept

    Trace trace{.queues = {"compute", "activation", "gradient", "host"}};
    double work = 0;
    for (int rank = 0; rank < 100; ++rank)
        for (int i = 0; i < 4'000; ++i) {
            trace.events.push_back({.layer = "l" + std::to_string(i % 200),
                                    .what = "conv",
                                    .phase = i < 2'000 ? "forward" : "backward",
                                    .rank = rank,
                                    .begin_us = i * 3.0,
                                    .duration_us = 2,
                                    .flops = 7});
            if (rank == 99) work += 7;
        }
    const auto timeline = timeline_of({{"predicted", &trace, {{0, 41}}}});
    ASSERT_TRUE(timeline);
    const TimelineTrack& track = timeline->tracks[0];
    EXPECT_EQ(track.ranks.size(), 16U);
    EXPECT_EQ(track.ranks[0].count, 41);
    EXPECT_EQ(track.ranks.back().rank, 99);
    EXPECT_LE(track.events.size(), 16'000U);
    double kept = 0;
    for (const TimelineEvent& e : track.events)
        if (e.rank == 15) kept += e.flops;
    EXPECT_DOUBLE_EQ(kept, work);
    EXPECT_NE(timeline->remark.find("16 of the 100 ranks"), std::string::npos);
    EXPECT_LT(page_of(to_json(ReportData{.kind = "run", .curves = curves, .timeline = timeline})).size(), 2'000'000U);
}

TEST(Report, MemoryKeepsThePeakAndFoldsRanks) {
    Json layers = Json::array(), phases = Json::array(), live = Json::array(), ranks = Json::array();
    for (int i = 0; i < 3'000; ++i) {
        layers.push_back("l" + std::to_string(i));
        phases.push_back(i < 1'500 ? "forward" : i % 50 == 0 ? "update" : "backward");
        live.push_back(i == 1'777 ? 5'000 : 100);
    }
    for (int r = 0; r < 4'096; ++r) ranks.push_back({{"arena_bytes", r == 9 ? 200 : 100}, {"state_bytes", 10}});
    const auto view = memory_of({{"rank", 0},
                                 {"arena_bytes", 6'000},
                                 {"state_bytes", {{"parameters", 40}}},
                                 {"layers", layers},
                                 {"phases", phases},
                                 {"bytes", {{"activations", live}, {"workspace", Json::array()}}}},
                                ranks);
    ASSERT_TRUE(view);
    EXPECT_LE(view->at.size(), 500U);
    EXPECT_EQ(view->allocated_bytes, 6'040);
    ASSERT_EQ(view->uses.size(), 2U);
    EXPECT_EQ(*std::max_element(view->uses[1].bytes.begin(), view->uses[1].bytes.end()), 5'000);
    EXPECT_EQ(view->peak_layer, "l1777");
    ASSERT_EQ(view->bands.size(), 2U);
    EXPECT_EQ(view->bands[1].phase, "backward");
    ASSERT_EQ(view->ranks.size(), 2U);
    EXPECT_EQ(view->ranks[0].label, "rank 9");
    EXPECT_EQ(view->ranks[1].count, 4'095);
    EXPECT_FALSE(memory_of(Json::object(), ranks));
}

TEST(Page, HoldsItsDataSafely) {
    const std::string page = page_of({{"title", "a</script><b>&"}, {"kind", "run"}});
    EXPECT_EQ(page.find("a</script><b>"), std::string::npos);
    EXPECT_NE(page.find("\"title\":\"a\\u003c/script>"), std::string::npos);
    EXPECT_NE(page.find("<title>a&lt;/script>"), std::string::npos);
    for (const char* mark : {"@TITLE@", "@STYLE@", "@DATA@", "@SCRIPT@"}) EXPECT_EQ(page.find(mark), std::string::npos) << mark;
    EXPECT_EQ(page.find("src=\"http"), std::string::npos);
}

}  // namespace
}  // namespace convoy
