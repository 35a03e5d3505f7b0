// Bytes on the wire, layer by layer, against the closed formulas for layers whose sizes divide: planned, and counted by the transport.
#include <gtest/gtest.h>

#include <map>

#include "comm/thread_world.h"
#include "exec/placement_testing.h"
#include "exec/session.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

constexpr int64_t kSamples = 4, kSize = 8, kChannels = 8, kFilters = 16;

// The layer under test, "conv2", between two others.
Graph net() {
    Builder b(Mode::Training);
    ValueId x = b.input({kSamples, 8, kSize, kSize});
    x = b.relu("relu1", b.conv("conv1", x, {.filters = kChannels, .kernel = {3, 3}, .pad = {1, 1}, .bias = false}));
    x = b.relu("relu2", b.conv("conv2", x, {.filters = kFilters, .kernel = {3, 3}, .pad = {1, 1}, .bias = false}));
    x = b.conv("conv3", x, {.filters = 8, .kernel = {1, 1}, .bias = false});
    x = b.flatten("flatten", b.adaptive_pool("gap", x, {1, 1}));
    b.graph().add_output("out", x);
    return training_graph({"net", b.take(), {{.output = "out"}}, 8}, {.rule = {.rule = Rule::Sgd}}, {});
}

// Activation words that each rank sends for conv2 in one step: planned, and counted.
struct Words {
    double planned = 0, counted = 0;
    int64_t weights = 0;  // elements of conv2's weight that the rank holds
};

std::vector<Words> words_of(const std::string& spec) {
    const Graph graph = net();
    const Plan plan = plan_from_spec(spec, 0, graph).plan;
    const Feeds feeds = feeds_for(graph, 8);
    ThreadWorld world(ranks_of(plan));
    std::vector<Words> words(static_cast<size_t>(world.size()));
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        Session session({.dtype = DType::f64, .seed = 5, .plan = plan, .link = &link});
        const auto executor = session.load(graph);
        for (const auto& [name, tensor] : feeds) executor->set_whole_input(name, tensor);
        executor->run({5, 0});
        Words& mine = words[static_cast<size_t>(transport.rank())];
        for (const Instruction& in : executor->program().instructions)
            if (in.layer == "conv2" && in.queue == Queue::Activation) mine.planned += static_cast<double>(in.sent) / 8;
        const auto& counts = link.channel(Lane::Activation).counts();
        if (const auto at = counts.find("conv2"); at != counts.end()) mine.counted = static_cast<double>(at->second.total_bytes()) / 8;
        mine.weights = session.state().read_part("conv2.weight").numel();
    });
    return words;
}

void expect_words(const std::string& spec, double expected, int64_t weight_parts) {
    for (const Words& w : words_of(spec)) {
        EXPECT_DOUBLE_EQ(w.planned, expected) << spec;
        EXPECT_DOUBLE_EQ(w.counted, expected) << spec;
        EXPECT_EQ(w.weights * weight_parts, kFilters * kChannels * 9) << spec;
    }
}

// Elements of x and y of the layer, with the samples that a rank holds and all channels.
double x_words(int64_t samples) { return static_cast<double>(samples * kChannels * kSize * kSize); }
double y_words(int64_t samples) { return static_cast<double>(samples * kFilters * kSize * kSize); }

TEST(PlacementTraffic, StationaryX) {
    for (const int p : {2, 4}) expect_words(fmt::format("channel:{}@x", p), 2 * y_words(kSamples) * (p - 1) / p, p);
    expect_words("sample:2,channel:2@x", 2 * y_words(kSamples / 2) / 2, 2);
}

TEST(PlacementTraffic, StationaryY) {
    for (const int p : {2, 4}) expect_words(fmt::format("channel:{}@y", p), 2 * x_words(kSamples) * (p - 1) / p, p);
    expect_words("sample:2,channel:2@y", 2 * x_words(kSamples / 2) / 2, 2);
}

TEST(PlacementTraffic, StationaryW) {
    for (const auto& [c, f] : {std::pair{2, 2}, {2, 4}, {4, 2}}) {
        // conv2 is the second layer: the axes have changed roles.
        const double pc = f, pf = c, a = x_words(kSamples), b = y_words(kSamples);
        expect_words(fmt::format("channel:{},filter:{}@w", c, f), 2 * ((a / pc) * (pf - 1) / pf + (b / pf) * (pc - 1) / pc), c * f);
    }
}

TEST(PlacementTraffic, Halos) {
    // One row of x forwards and one of dy backwards, to each neighbour.
    const double row = static_cast<double>(kSamples * kSize * (kChannels + kFilters));
    expect_words("height:2", row, 1);
    const auto words = words_of("height:4");
    for (const size_t r : {0u, 3u}) EXPECT_DOUBLE_EQ(words[r].counted, row);
    for (const size_t r : {1u, 2u}) EXPECT_DOUBLE_EQ(words[r].counted, 2 * row);
    // With two dims split a rank has two sides and a corner.
    const double side = static_cast<double>(kSamples * (kSize / 2) * (kChannels + kFilters)),
                 corner = static_cast<double>(kSamples * (kChannels + kFilters));
    expect_words("height:2,width:2", 2 * side + corner, 1);
}

TEST(PlacementTraffic, SamplesAloneSendNothingButGradients) { expect_words("sample:4", 0, 1); }

}  // namespace
}  // namespace convoy
