// Programs whose traffic runs on devices, with the reference in the place of a device: kernels are put into a stream or into a recording, and traffic is only
// done when something waits for it. What is used without having been waited for is therefore wrong.
#include <gtest/gtest.h>

#include <deque>

#include "comm/thread_world.h"
#include "exec/energy.h"
#include "exec/placement_testing.h"
#include "exec/session.h"
#include "kernels/function_kernel.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

// What a device does, in order; or what it will do, while recording.
struct StandInStream {
    using Work = std::function<void(const StepContext&)>;
    void put(Work work) {
        if (recording)
            recording->push_back(std::move(work));
        else
            work(context);
    }
    StepContext context;
    std::vector<Work>* recording = nullptr;
};

class StandInBackend : public Backend {
  public:
    explicit StandInBackend(StandInStream& stream) : stream_(stream), host_(make_backend("reference", {})) {}

    const Target& target() const override { return host_->target(); }
    std::unique_ptr<Memory> allocate(int64_t bytes) override {
        auto memory = host_->allocate(bytes);
        memory->fill(0xff);
        return memory;
    }
    std::unique_ptr<Kernel> prepare(const KernelRequest& request) override { return streamed(host_->prepare(request)); }
    std::unique_ptr<Kernel> prepare_copy(const Operand& src, const Operand& dst) override {
        return streamed(host_->prepare_copy(src, dst));
    }
    void upload(const Tensor& src, const Operand& dst) override { host_->upload(src, dst); }
    void download(const Operand& src, Tensor& dst) override { host_->download(src, dst); }
    void synchronize() override {}
    bool on_host() const override { return false; }
    std::unique_ptr<Kernel> record(std::span<Kernel* const> kernels) override {
        ++recordings;
        const auto work = std::make_shared<std::vector<StandInStream::Work>>();
        stream_.recording = work.get();
        for (Kernel* kernel : kernels) kernel->run({});
        stream_.recording = nullptr;
        return make_kernel([work](const StepContext& context) {
            for (const auto& each : *work) each(context);
        });
    }
    std::optional<DeviceEndpoint> endpoint() const override {
        return DeviceEndpoint{.identity = "stand-in", .name = "stand-in", .stream = &stream_};
    }
    Energy energy() const override { return {.joules = joules, .source = "stand-in"}; }

    int recordings = 0;
    double joules = 0;

  private:
    std::unique_ptr<Kernel> streamed(std::shared_ptr<Kernel> kernel) {
        return make_kernel([this, kernel](const StepContext& context) {
            stream_.context = context;
            stream_.put([kernel](const StepContext& now) { kernel->run(now); });
        });
    }

    StandInStream& stream_;
    std::unique_ptr<Backend> host_;
};

class StandInTraffic : public DeviceTraffic {
  public:
    StandInTraffic(StandInStream& stream, const HostLanes& host) : stream_(stream), host_(host) {}

    const std::string& name() const override { return name_; }
    void open(const std::vector<std::pair<Lane, std::vector<Rank>>>& groups, const std::vector<Lane>&) override {
        std::vector<Communicators::Wanted> wanted;
        for (const auto& [lane, group] : groups) wanted.emplace_back(host_.channels[static_cast<size_t>(lane)], group);
        host_.communicators->open(wanted);
    }
    std::unique_ptr<BoundTraffic> bind(const DeviceCall& call) override;
    void check() override { EXPECT_GE(expected, started) << "traffic that nobody expected"; }

    void run(const DeviceCall& bound) {
        Channel& channel = *host_.channels[static_cast<size_t>(bound.lane)];
        channel.set_label(bound.layer);
        for (const DeviceCall::Fill& fill : bound.before) {
            if (fill.src)
                std::copy_n(fill.src, fill.bytes, fill.dst);
            else
                std::fill_n(fill.dst, fill.bytes, std::byte{0});
        }
        const CollectiveCall& call = bound.call;
        if (call.kind == Traffic::Transfer) return channel.exchange(bound.sends, bound.receives);
        Communicator& communicator = host_.communicators->at(channel, bound.group);
        switch (call.kind) {
            case Traffic::AllReduce: return communicator.all_reduce(call.out, call.count, call.dtype);
            case Traffic::ReduceScatter: return communicator.reduce_scatter(call.in, call.out, bound.counts, call.dtype);
            default: return communicator.all_gather(call.in, call.out, bound.counts, call.dtype);
        }
    }
    // Everything started up to this one, in the order in which it was: the same on all ranks.
    void run_until(const DeviceCall* last) {
        while (std::find(pending.begin(), pending.end(), last) != pending.end()) {
            run(*pending.front());
            pending.pop_front();
        }
    }

    std::deque<const DeviceCall*> pending;
    int64_t expected = 0, started = 0;
    StandInStream& stream_;

  private:
    HostLanes host_;
    std::string name_ = "stand-in";
};

class StandInBound : public BoundTraffic {
  public:
    StandInBound(StandInTraffic& traffic, DeviceCall call) : traffic_(traffic), call_(std::move(call)) {}
    void start(void*) override {
        traffic_.stream_.put([this](const StepContext&) {
            ++traffic_.started;
            traffic_.pending.push_back(&call_);
        });
    }
    void join(void*) override {
        traffic_.stream_.put([this](const StepContext&) { traffic_.run_until(&call_); });
    }
    void expect() override { ++traffic_.expected; }

  private:
    StandInTraffic& traffic_;
    DeviceCall call_;
};

std::unique_ptr<BoundTraffic> StandInTraffic::bind(const DeviceCall& call) { return std::make_unique<StandInBound>(*this, call); }

Graph net(int64_t batch, int64_t size) {
    Builder b(Mode::Training);
    ValueId x = b.input({batch, 3, size, size});
    x = b.relu("relu1", b.batch_norm("bn1", b.conv("conv1", x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}, .bias = false})));
    x = b.relu("relu2", b.conv("conv2", x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}}));
    x = b.max_pool("pool", x, {.kernel = {2, 2}});
    x = b.flatten("flatten", b.adaptive_pool("gap", x, {1, 1}));
    x = b.linear("fc", x, {.outputs = 10});
    b.graph().add_output("logits", x);
    return training_graph({"net", b.take(), {{.output = "logits"}}, 10}, {.rule = {.rule = Rule::Momentum}}, {});
}

struct Seen {
    Worst worst;
    int64_t expected = 0, started = 0, recordings = 0, traffic = 0;
};

constexpr int kSteps = 4;

// One rank's run on a stand-in for a device, against one process. The loss is watched, so that a step has two parts, or not.
Seen run_rank(Transport& transport, const Graph& graph, const Plan& plan, const Feeds& feeds, const Truth& truth, TrafficMode mode,
              bool watched) {
    StandInStream stream;
    StandInBackend backend(stream);
    Link link(transport, std::chrono::seconds(60));
    StandInTraffic* traffic = nullptr;
    link.set_connect([&](const DeviceEndpoint&, const HostLanes& host, DeviceTransport) {
        auto made = std::make_unique<StandInTraffic>(stream, host);
        traffic = made.get();
        return made;
    });
    State state(backend, &link);
    Program program = compile(graph, plan, backend.target(), {.dtype = DType::f64, .rank = transport.rank()});
    state.bind(program, 5);
    Executor executor(std::move(program), {backend, state, &link});
    executor.set_traffic_mode(mode);
    if (watched)
        for (const auto& [name, slot] : executor.program().outputs)
            if (name == "loss") executor.watch(slot);
    for (const auto& [name, tensor] : feeds) executor.set_whole_input(name, tensor);
    for (int s = 0; s < kSteps; ++s) EXPECT_TRUE(executor.run({5, static_cast<uint32_t>(s)}));
    Seen seen{.expected = traffic->expected, .started = traffic->started, .recordings = backend.recordings};
    for (const Instruction& in : executor.program().instructions) seen.traffic += is_traffic(in.action);
    EXPECT_TRUE(traffic->pending.empty()) << "a step ends with all its traffic done";
    for (const auto& spec : state.specs())
        seen.worst.see(relative_error(state.read(spec.name), truth.states.at(spec.name), 1e-3), spec.name);
    TraceLog log(&link);
    executor.run_traced({5, kSteps}, log);
    int64_t traced = 0;
    for (const TraceEvent& e : log.own().events) traced += e.queue != static_cast<int>(Queue::Compute);
    EXPECT_EQ(traced, seen.traffic);
    EXPECT_EQ(executor.find_non_finite({5, kSteps}), std::nullopt);
    return seen;
}

class DevicePlans : public testing::TestWithParam<const char*> {};

TEST_P(DevicePlans, ComputeWhatOneProcessComputes) {
    const Graph graph = net(6, 11);
    const Feeds feeds = feeds_for(graph, 10);
    const Truth truth = one_process(graph, feeds, kSteps);
    const std::string spec = GetParam();
    const Plan plan = plan_from_spec(spec, spec.find(':') == std::string::npos ? 4 : 0, graph).plan;
    for (const auto& [mode, watched] : {std::pair{TrafficMode::Beside, true}, {TrafficMode::Beside, false}, {TrafficMode::Serial, true}}) {
        ThreadWorld world(ranks_of(plan));
        std::vector<Seen> seen(static_cast<size_t>(world.size()));
        run_ranks(world, [&, mode = mode, watched = watched](Transport& transport) {
            seen[static_cast<size_t>(transport.rank())] = run_rank(transport, graph, plan, feeds, truth, mode, watched);
        });
        for (const Seen& rank : seen) {
            EXPECT_LE(rank.worst.error, 1e-9) << spec << ": " << rank.worst.name;
            EXPECT_GT(rank.traffic, 0);
            EXPECT_EQ(rank.started, kSteps * rank.traffic);
            EXPECT_EQ(rank.expected, rank.started);
            EXPECT_EQ(rank.recordings, watched ? 2 : 1) << "the step is recorded, traffic and all";
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Specs, DevicePlans,
                         testing::Values("sample:2", "height:2", "sample:2,height:2", "channel:2@x", "channel:2@y", "zero"));

TEST(EnergyCount, SharedDevicesCountOnce) {
    ThreadWorld world(3);
    run_ranks(world, [&](Transport& transport) {
        StandInStream stream;
        StandInBackend backend(stream);
        Link link(transport, std::chrono::seconds(60));
        backend.joules = 100;
        EnergyCount count(backend, &link);
        EXPECT_TRUE(count.available());
        backend.joules = 107;
        EXPECT_EQ(count.take(), 7.0) << "all three have the same GPU";
        EXPECT_EQ(count.take(), 0.0);
    });
}

TEST(EnergyCount, SaysWhyThereIsNoFigure) {
    const auto backend = make_backend("reference", {});
    EnergyCount count(*backend, nullptr);
    EXPECT_FALSE(count.available());
    EXPECT_EQ(count.take(), std::nullopt);
    EXPECT_EQ(count.source(), "there is no meter of this backend's energy");
}

}  // namespace
}  // namespace convoy
