#include "comm/device_choice.h"

#include <gtest/gtest.h>

#include "comm/device_traffic.h"
#include "comm/thread_world.h"

namespace convoy {

namespace {

RankDevice on(int number, const std::string& identity, int node = 0) {
    return {.device = {.number = number, .identity = identity, .name = "NVIDIA H200"},
            .node = node,
            .nccl = true,
            .nccl_detail = "NCCL 2.28.9"};
}

TEST(DeviceChoice, RanksOfANodeTakeOneGpuAfterTheOther) {
    const std::vector<int> one{0, 0, 0, 0, 0};
    EXPECT_EQ(device_of(0, one, 0, 4), 0);
    EXPECT_EQ(device_of(3, one, 0, 4), 3);
    EXPECT_EQ(device_of(4, one, 0, 4), 0) << "more ranks than GPUs";
    EXPECT_EQ(device_of(1, one, 3, 4), 0) << "from the one that was named on, and round";
    EXPECT_EQ(device_of(3, one, 0, 1), 0);
    const std::vector<int> mixed{0, 1, 0, 1, 1};
    EXPECT_EQ(device_of(1, mixed, 0, 2), 0) << "the first of its node";
    EXPECT_EQ(device_of(2, mixed, 0, 2), 1);
    EXPECT_EQ(device_of(4, mixed, 0, 2), 0) << "the third of a node with two";
}

TEST(DeviceChoice, AGpuThatIsNotThereIsAnError) {
    try {
        device_of(0, {0, 0}, 2, 2);
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "there is no GPU 2; this machine has 2 (0 to 1)");
    }
}

TEST(DeviceChoice, NcclNeedsAGpuForEachRank) {
    EXPECT_EQ(why_not_nccl({on(0, "a"), on(1, "b")}), "");
    EXPECT_EQ(why_not_nccl({on(0, "a"), on(0, "b")}), "") << "each process may see one GPU, as its number 0";
    EXPECT_EQ(why_not_nccl({on(0, "a"), on(1, "b"), on(0, "a")}), "ranks 0, 2 share one GPU, which NCCL does not support");
}

TEST(DeviceChoice, NcclMustBeTheSameEverywhere) {
    auto ranks = std::vector{on(0, "a"), on(1, "b")};
    ranks[1].nccl_detail = "NCCL 2.20.5";
    EXPECT_EQ(why_not_nccl(ranks), "rank 0 has NCCL 2.28.9, rank 1 has NCCL 2.20.5");
    ranks[1].nccl = false;
    ranks[1].nccl_detail = "not in this build";
    EXPECT_EQ(why_not_nccl(ranks), "rank 1 has no NCCL: not in this build");
}

TEST(DeviceChoice, SaysWhoHasWhich) {
    EXPECT_EQ(devices_text({on(0, "a"), on(1, "b"), on(0, "a")}), "GPU 0 (NVIDIA H200) for ranks 0, 2; GPU 1 (NVIDIA H200) for rank 1");
    EXPECT_EQ(devices_text({on(0, "a"), on(0, "b", 1)}),
              "GPU 0 of node 0 (NVIDIA H200) for rank 0; GPU 0 of node 1 (NVIDIA H200) for rank 1");
}

TEST(DeviceChoice, KnowsTheTransports) {
    for (const DeviceTransport transport : {DeviceTransport::Auto, DeviceTransport::Nccl, DeviceTransport::Host})
        EXPECT_EQ(device_transport_named(name_of(transport)), transport);
    EXPECT_THROW(device_transport_named("tcp"), Error);
}

// Two ranks that say they have the same GPU, and ask for this; what connect_devices said or threw.
std::string outcome(DeviceTransport wanted) {
    ThreadWorld world(2);
    testing::internal::CaptureStderr();
    std::string error;
    try {
        run_ranks(world, [&](Transport& transport) {
            Channel activation(transport, Lane::Activation), gradient(transport, Lane::Gradient), late(transport, Lane::Late),
                service(transport, Lane::Service);
            Communicators communicators;
            const HostLanes host{.channels = {&activation, &gradient, &late, &service}, .communicators = &communicators};
            const auto traffic = connect_devices({.number = 0, .identity = "one", .name = "a GPU"}, host, wanted);
            require(!traffic, "connected");
        });
    } catch (const Error& e) {
        error = e.what();
    }
    return testing::internal::GetCapturedStderr() + error;
}

TEST(DeviceChoice, FallsBackToHostMemoryAndSaysSo) {
    const std::string why =
        nccl_status().ready ? "ranks 0, 1 share one GPU, which NCCL does not support" : "rank 0 has no NCCL: " + nccl_status().detail;
    EXPECT_EQ(outcome(DeviceTransport::Auto), "GPU 0 (a GPU) for ranks 0, 1; their traffic goes through host memory (" + why + ")\n");
    EXPECT_EQ(outcome(DeviceTransport::Host), "GPU 0 (a GPU) for ranks 0, 1; their traffic goes through host memory (as asked for)\n");
    EXPECT_NE(outcome(DeviceTransport::Nccl).find("ended the run: NCCL cannot carry the traffic between the GPUs: " + why),
              std::string::npos);
}

}  // namespace

}  // namespace convoy
