// Bytes on the wire, layer by layer, against the closed formulas for layers whose sizes divide: planned, and counted by the transport. A library's collectives
// are charged by a formula themselves, so those of ours run, whose bytes are counted message by message.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "comm/thread_world.h"
#include "exec/placement_testing.h"
#include "exec/session.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

constexpr int64_t kSamples = 4, kSize = 8, kChannels = 8, kFilters = 16;

// The layer under test, "conv2", alike along all its spatial dims.
struct Layer {
    int rank = 2;
    int64_t size = kSize, kernel = 3, stride = 1, dilation = 1, pad = 1;

    int64_t reach() const { return (kernel - 1) * dilation; }
    int64_t outputs() const { return (size + 2 * pad - reach() - 1) / stride + 1; }
};

// Between two others.
Graph net_of(const Layer& layer) {
    const auto all = [&](int64_t v) { return Dims::filled(layer.rank, v); };
    Builder b(Mode::Training);
    ValueId x = b.input(join({kSamples, 8}, all(layer.size)));
    x = b.relu("relu1", b.conv("conv1", x, {.filters = kChannels, .kernel = all(3), .pad = all(1), .bias = false}));
    x = b.conv("conv2", x,
               {.filters = kFilters,
                .kernel = all(layer.kernel),
                .stride = all(layer.stride),
                .dilation = all(layer.dilation),
                .pad = all(layer.pad),
                .bias = false});
    x = b.conv("conv3", b.relu("relu2", x), {.filters = 8, .kernel = all(1), .bias = false});
    x = b.flatten("flatten", b.adaptive_pool("gap", x, all(1)));
    b.graph().add_output("out", x);
    return training_graph({"net", b.take(), {{.output = "out"}}, 8}, {.rule = {.rule = Rule::Sgd}}, {});
}

// Activation words that each rank sends for conv2 in one step: planned, and counted.
struct Words {
    double forward = 0, backward = 0;  // planned
    double counted = 0;
    int64_t weights = 0;  // elements of conv2's weight that the rank holds

    double planned() const { return forward + backward; }
};

// The algorithms of ours that send what is optimal; none of them is the library's.
struct Algorithms {
    Algorithm reduce_scatter, all_gather;
};
const std::vector<Algorithms> kAlgorithms{
    {Algorithm::Ring, Algorithm::Ring}, {Algorithm::Pairwise, Algorithm::Pairwise}, {Algorithm::Pairwise, Algorithm::Bruck}};

CollectiveTable table_of(const Algorithms& algorithms) {
    CollectiveTable table;
    table.set({.kind = Traffic::AllReduce, .algorithm = Algorithm::Ring});
    table.set({.kind = Traffic::ReduceScatter, .algorithm = algorithms.reduce_scatter});
    table.set({.kind = Traffic::AllGather, .algorithm = algorithms.all_gather});
    return table;
}

// Whether a collective would go by the library.
bool by_library(Link& link, const Instruction& in) {
    const auto* collective = std::get_if<Collective>(&in.action);
    if (!collective) return false;
    for (const Traffic kind : {Traffic::AllReduce, Traffic::ReduceScatter, Traffic::AllGather}) {
        const CollectiveCall call{.kind = kind, .dtype = in.dtype, .count = 1, .counts = collective->counts};
        if (link.communicator(lane_of(in.queue), collective->group).choice(call) == Algorithm::Library) return true;
    }
    return false;
}

std::vector<Words> words_of(const std::string& spec, const Layer& layer = {}, const Algorithms& algorithms = kAlgorithms[0]) {
    const Graph graph = net_of(layer);
    const Plan plan = plan_from_spec(spec, 0, graph).plan;
    const Feeds feeds = feeds_for(graph, 8);
    ThreadWorld world(ranks_of(plan));
    std::vector<Words> words(static_cast<size_t>(world.size()));
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        link.set_table(table_of(algorithms));
        Session session({.dtype = DType::f64, .seed = 5, .plan = plan, .link = &link});
        const auto executor = session.load(graph);
        for (const auto& [name, tensor] : feeds) executor->set_whole_input(name, tensor);
        executor->run({5, 0});
        Words& mine = words[static_cast<size_t>(transport.rank())];
        for (const Instruction& in : executor->program().instructions) {
            EXPECT_FALSE(by_library(link, in)) << in.layer;
            if (in.layer == "conv2" && in.queue == Queue::Activation)
                (in.phase == Phase::Forward ? mine.forward : mine.backward) += static_cast<double>(in.sent) / 8;
        }
        const auto& counts = link.channel(Lane::Activation).counts();
        if (const auto at = counts.find("conv2"); at != counts.end()) mine.counted = static_cast<double>(at->second.total_bytes()) / 8;
        mine.weights = session.state().read_part("conv2.weight").numel();
    });
    return words;
}

void expect_words(const std::string& spec, double expected, int64_t weight_parts) {
    for (const Algorithms& algorithms : kAlgorithms)
        for (const Words& w : words_of(spec, {}, algorithms)) {
            const std::string by = fmt::format("{} by {} and {}", spec, name_of(algorithms.reduce_scatter), name_of(algorithms.all_gather));
            EXPECT_DOUBLE_EQ(w.planned(), expected) << by;
            EXPECT_DOUBLE_EQ(w.counted, expected) << by;
            EXPECT_EQ(w.weights * weight_parts, kFilters * kChannels * 9) << by;
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

// A dim of the layer, cut evenly. Of x a rank sends what the formulas for strided halos say; of dy what the ranges of its neighbours' dx need.
class CutDim {
  public:
    CutDim(const Layer& layer, int parts) : layer_(layer), parts_(parts) {}

    int64_t x_rows() const { return layer_.size / parts_; }
    int64_t y_rows() const { return layer_.outputs() / parts_; }

    int64_t x_rows_sent(int part) const {
        const int64_t radius = layer_.reach() / 2, s = layer_.stride;
        const auto mod = [s](int64_t v) { return ((v % s) + s) % s; };
        const int64_t margin = layer_.pad > 0 ? 0 : radius, first = part * x_rows() - margin, last = (part + 1) * x_rows() - 1 - margin;
        const int64_t low = std::max<int64_t>(0, radius - mod(first - 1)), high = std::max<int64_t>(0, radius - mod(s - mod(last + 1)));
        return (part > 0 ? low : 0) + (part + 1 < parts_ ? high : 0);
    }
    int64_t y_rows_sent(int part) const {
        int64_t sent = 0;
        for (int other = 0; other < parts_; ++other) {
            if (other == part) continue;
            for (int64_t o = part * y_rows(); o < (part + 1) * y_rows(); ++o) {
                const int64_t from = o * layer_.stride - layer_.pad, to = from + layer_.reach();
                sent += from < (other + 1) * x_rows() && to >= other * x_rows();
            }
        }
        return sent;
    }

  private:
    const Layer& layer_;
    int parts_;
};

// With sides and corners: all that lies around a rank's part within the widths, along one or two dims that are cut.
void expect_halos(const Layer& layer, const std::string& spec, const std::vector<int>& parts) {
    int64_t x_rest = kSamples * kChannels, y_rest = kSamples * kFilters;  // elements of a row, over the dims that are whole
    for (int i = static_cast<int>(parts.size()); i < layer.rank; ++i) x_rest *= layer.size, y_rest *= layer.outputs();
    const auto words = words_of(spec, layer);
    for (size_t rank = 0; rank < words.size(); ++rank) {
        const int parts_inside = parts.size() > 1 ? parts[1] : 1;
        const std::array<int, 2> at{static_cast<int>(rank) / parts_inside, static_cast<int>(rank) % parts_inside};
        int64_t x_own = 1, x_all = 1, y_own = 1, y_all = 1;
        for (size_t i = 0; i < parts.size(); ++i) {
            const CutDim cut(layer, parts[i]);
            x_own *= cut.x_rows(), x_all *= cut.x_rows() + cut.x_rows_sent(at[i]);
            y_own *= cut.y_rows(), y_all *= cut.y_rows() + cut.y_rows_sent(at[i]);
        }
        const auto x = static_cast<double>((x_all - x_own) * x_rest), y = static_cast<double>((y_all - y_own) * y_rest);
        const std::string what = fmt::format("kernel {}, stride {}, dilation {}, {}D, {}, rank {}", layer.kernel, layer.stride,
                                             layer.dilation, layer.rank, spec, rank);
        EXPECT_DOUBLE_EQ(words[rank].forward, x) << what;
        EXPECT_DOUBLE_EQ(words[rank].backward, y) << what;
        EXPECT_DOUBLE_EQ(words[rank].counted, x + y) << what;
        EXPECT_EQ(words[rank].weights, kFilters * kChannels * numel(Dims::filled(layer.rank, layer.kernel))) << what;
    }
}

TEST(PlacementTraffic, StridedAndDilatedHalos) {
    const Layer dilated{.size = 16, .dilation = 2, .pad = 2}, strided{.size = 16, .stride = 2}, wide{.size = 16, .kernel = 5, .pad = 2},
        wide_strided{.size = 16, .kernel = 5, .stride = 2, .pad = 2}, both{.size = 32, .stride = 2, .dilation = 2, .pad = 2},
        apart{.size = 16, .kernel = 1, .stride = 2, .pad = 0}, far{.size = 16, .kernel = 7, .stride = 4, .pad = 3};
    for (const Layer& layer : {Layer{}, dilated, strided, wide, wide_strided, both, apart, far}) {
        expect_halos(layer, "height:2", {2});
        expect_halos(layer, "height:4", {4});
        expect_halos(layer, "height:2,width:2", {2, 2});
    }
}

TEST(PlacementTraffic, HalosOfVolumes) {
    for (const Layer& layer : {Layer{.rank = 3}, Layer{.rank = 3, .stride = 2}, Layer{.rank = 3, .dilation = 2, .pad = 2}}) {
        expect_halos(layer, "depth:2", {2});
        expect_halos(layer, "depth:2,height:2", {2, 2});
    }
    // In full: two sides and the edge between them, of x forwards and of dy backwards.
    const auto side = static_cast<double>(kSamples * kSize * kSize / 2), edge = static_cast<double>(kSamples * kSize);
    for (const Words& w : words_of("depth:2,height:2", {.rank = 3}))
        EXPECT_DOUBLE_EQ(w.counted, (2 * side + edge) * (kChannels + kFilters));
}

TEST(PlacementTraffic, SamplesAloneSendNothingButGradients) { expect_words("sample:4", 0, 1); }

}  // namespace
}  // namespace convoy
