// NCCL with one rank, through every collective, started directly and from a recording; and what happens when it refuses. Skipped where there is no GPU.
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "comm/device_traffic.h"
#include "comm/nccl/nccl_calls.h"
#include "comm/testing.h"
#include "comm/thread_world.h"
#include "tensor/tensor.h"

namespace convoy {

namespace {

using testing_comm::noise;

// Memory of the GPU, with what it is to hold at first.
class DeviceBytes {
  public:
    explicit DeviceBytes(const std::vector<std::byte>& bytes) : size_(bytes.size()) {
        check_cuda(cudaMalloc(&data_, size_), "cudaMalloc");
        set(bytes);
    }
    ~DeviceBytes() { cudaFree(data_); }
    DeviceBytes(const DeviceBytes&) = delete;
    DeviceBytes& operator=(const DeviceBytes&) = delete;

    std::byte* data() const { return static_cast<std::byte*>(data_); }
    void set(const std::vector<std::byte>& bytes) {
        check_cuda(cudaMemcpy(data_, bytes.data(), size_, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    std::vector<std::byte> read() const {
        std::vector<std::byte> bytes(size_);
        check_cuda(cudaMemcpy(bytes.data(), data_, size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
        return bytes;
    }

  private:
    size_t size_;
    void* data_ = nullptr;
};

// One rank's lanes over a world, and a stream to compute in.
struct End {
    explicit End(Transport& transport)
        : activation(transport, Lane::Activation),
          gradient(transport, Lane::Gradient),
          late(transport, Lane::Late),
          service(transport, Lane::Service) {
        check_cuda(cudaSetDevice(0), "cudaSetDevice");
        check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    ~End() { cudaStreamDestroy(stream); }
    HostLanes lanes() { return {.channels = {&activation, &gradient, &late, &service}, .communicators = &communicators}; }
    DeviceEndpoint device(const std::string& identity) const {
        return {.number = 0, .identity = identity, .name = "GPU", .stream = stream};
    }

    Channel activation, gradient, late, service;
    Communicators communicators;
    cudaStream_t stream = nullptr;
};

class Nccl : public testing::Test {
  protected:
    void SetUp() override {
        int count = 0;
        if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "there is no GPU";
        world_.emplace(1);
        end_.emplace(world_->rank(0));
        traffic_ = make_nccl_traffic(end_->device("one"), end_->lanes());
        traffic_->open({{Lane::Gradient, {0}}, {Lane::Activation, {0}}}, {Lane::Activation});
    }
    void TearDown() override { traffic_.reset(); }

    // Runs it once as it is, then records it and runs the recording twice: `out` is poisoned before each, and must hold `expected` after.
    void expect_result(const DeviceCall& call, DeviceBytes& out, const std::vector<std::byte>& poison,
                       const std::vector<std::byte>& expected) {
        const auto bound = traffic_->bind(call);
        const auto verify = [&](const char* how) {
            check_cuda(cudaStreamSynchronize(end_->stream), "cudaStreamSynchronize");
            traffic_->check();
            EXPECT_EQ(out.read(), expected) << name_of(call.call.kind) << " of " << name_of(call.call.dtype) << ", " << how;
        };
        out.set(poison);
        bound->expect();
        bound->start(end_->stream);
        bound->join(end_->stream);
        verify("started");
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t recording = nullptr;
        check_cuda(cudaStreamBeginCapture(end_->stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        bound->start(end_->stream);
        bound->join(end_->stream);
        check_cuda(cudaStreamEndCapture(end_->stream, &graph), "cudaStreamEndCapture");
        check_cuda(cudaGraphInstantiate(&recording, graph, 0), "cudaGraphInstantiate");
        for (int run = 0; run < 2; ++run) {
            out.set(poison);
            bound->expect();
            check_cuda(cudaGraphLaunch(recording, end_->stream), "cudaGraphLaunch");
            verify("recorded");
        }
        check_cuda(cudaGraphExecDestroy(recording), "cudaGraphExecDestroy");
        check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    }

    std::optional<ThreadWorld> world_;
    std::optional<End> end_;
    std::unique_ptr<DeviceTraffic> traffic_;
};

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32, DType::u8};
constexpr int64_t kCount = 1000;

// Numbers that no rounding changes, so that a sum over one rank has the same bits.
std::vector<std::byte> values(DType dtype) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < kCount; ++i) numbers.push_back(static_cast<double>(i % 100));
    const Tensor tensor = Tensor::of<double>({kCount}, numbers).to(dtype);
    return {tensor.data(), tensor.data() + tensor.bytes()};
}

TEST_F(Nccl, CollectivesOfOneRank) {
    for (const DType dtype : kTypes) {
        const auto data = values(dtype), poison = noise(static_cast<int64_t>(data.size()), 3);
        DeviceBytes in(data), out(poison);
        DeviceCall call{.lane = Lane::Gradient, .layer = "layer1", .group = {0}};
        call.call = {.dtype = dtype, .in = out.data(), .out = out.data(), .count = kCount};
        call.before = {{out.data(), in.data(), data.size()}};
        for (const Traffic kind : {Traffic::AllReduce, Traffic::Broadcast}) {
            call.call.kind = kind;
            expect_result(call, out, poison, data);
        }
        call.before.clear();
        call.call.in = in.data();
        call.counts = {kCount};
        for (const Traffic kind : {Traffic::ReduceScatter, Traffic::AllGather}) {
            call.call.kind = kind;
            expect_result(call, out, poison, data);
        }
    }
}

TEST_F(Nccl, GapsBecomeZero) {
    const auto data = noise(64, 1), poison = noise(256, 2);
    DeviceBytes in(data), out(poison);
    std::vector<std::byte> expected(256);
    std::copy(data.begin(), data.end(), expected.begin());
    DeviceCall call{.lane = Lane::Gradient, .layer = "layer1", .group = {0}};
    call.before = {{out.data(), in.data(), 64}, {out.data() + 64, nullptr, 192}};
    call.call = {.kind = Traffic::AllReduce, .dtype = DType::u8, .in = out.data(), .out = out.data(), .count = 256};
    expect_result(call, out, poison, expected);
}

TEST_F(Nccl, ATransferToItself) {
    const auto data = noise(5000, 1), poison = noise(5000, 2);
    DeviceBytes in(data), out(poison);
    DeviceCall call{.lane = Lane::Activation, .layer = "layer2"};
    call.call.kind = Traffic::Transfer;
    call.sends = {{0, 0, {in.data(), 3000}}, {0, 0, {in.data() + 3000, 2000}}};
    call.receives = {{0, 0, {out.data(), 3000}}, {0, 0, {out.data() + 3000, 2000}}};
    expect_result(call, out, poison, data);
    const TrafficCount& count = end_->activation.counts().at("layer2");
    EXPECT_EQ(count.bytes_of(Traffic::Transfer), 3 * 5000);
    EXPECT_EQ(count.calls_of(Traffic::Transfer), 3);
}

TEST_F(Nccl, WhatWasEndedIsAbortedUnderARecording) {
    DeviceBytes data(noise(4000, 1));
    DeviceCall call{.lane = Lane::Gradient, .layer = "layer1", .group = {0}};
    call.call = {.kind = Traffic::AllReduce, .dtype = DType::f32, .in = data.data(), .out = data.data(), .count = 1000};
    const auto bound = traffic_->bind(call);
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamBeginCapture(end_->stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    bound->start(end_->stream);
    bound->join(end_->stream);
    check_cuda(cudaStreamEndCapture(end_->stream, &graph), "cudaStreamEndCapture");
    bound->expect();  // and it never comes
    world_->rank(0).fail_all("the disk is full");
    const auto ended = [&] {
        try {
            traffic_->check();
            return false;
        } catch (const RunFailed& e) {
            EXPECT_STREQ(e.what(), "rank 0 ended the run: the disk is full");
            return true;
        }
    };
    bool seen = false;
    for (int i = 0; i < 1000 && !(seen = ended()); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(seen);
    EXPECT_THROW(bound->start(end_->stream), RunFailed);
    check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

// Two ranks that say they have GPUs of their own and have the same one: NCCL finds out.
TEST_F(Nccl, ARefusalMeansHostMemory) {
    ThreadWorld world(2);
    testing::internal::CaptureStderr();
    run_ranks(world, [&](Transport& transport) {
        End end(transport);
        const auto traffic = connect_devices(end.device(transport.rank() == 0 ? "one" : "other"), end.lanes(), DeviceTransport::Auto);
        require(!traffic, "NCCL has connected two ranks on one GPU");
    });
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("their traffic goes through host memory (ncclCommInitRank"), std::string::npos) << said;
    std::printf("%s", said.c_str());
}

}  // namespace

}  // namespace convoy
