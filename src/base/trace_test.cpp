#include "base/trace.h"
#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

Trace sample() {
    return {.queues = {"compute", "gradient"},
            .events = {{.layer = "conv1",
                        .what = "conv 3x3",
                        .phase = "forward",
                        .step = 7,
                        .begin_us = 0.1,
                        .duration_us = 12.25,
                        .flops = 1e9,
                        .bytes = 4096},
                       {.layer = "conv1",
                        .what = "allreduce over 2",
                        .phase = "backward",
                        .rank = 1,
                        .queue = 1,
                        .step = 7,
                        .begin_us = 1.0 / 3,
                        .duration_us = 2,
                        .bytes = 64,
                        .sent = 32}}};
}

TEST(Trace, round_trips_through_text) {
    const Trace trace = sample();
    EXPECT_EQ(trace_from_chrome(Json::parse(chrome_trace(trace).dump())), trace);
    EXPECT_EQ(trace_from_chrome(chrome_trace(Trace{})), Trace{});
}

TEST(Trace, names_ranks_and_queues_once) {
    Trace trace = sample();
    trace.events.push_back(trace.events[0]);
    int processes = 0, threads = 0;
    const Json json = chrome_trace(trace);
    for (const Json& event : json.at("traceEvents")) {
        processes += event.at("name") == "process_name";
        threads += event.at("name") == "thread_name";
    }
    EXPECT_EQ(processes, 2);
    EXPECT_EQ(threads, 2);
    EXPECT_EQ(json.at("traceEvents")[0].at("args").at("name"), "rank 0");
}

TEST(Trace, refuses_what_is_none_and_says_where) {
    for (const char* text : {"[]", "{}", R"({"queues": [], "traceEvents": 3})", R"({"queues": ["a"], "traceEvents": [{"ph": "X"}]})"})
        EXPECT_THROW(trace_from_chrome(Json::parse(text)), Error) << text;
    Json json = chrome_trace(sample());
    json["queues"] = Json::array({"compute"});
    try {
        trace_from_chrome(json, "file.json");
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("file.json"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("it is on queue 1, of 1"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace convoy
