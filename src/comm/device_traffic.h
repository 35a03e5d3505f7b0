// Traffic between GPUs that never leaves them: each lane is a stream of the device, and a piece of traffic is put into it behind what the compute stream
// holds at that moment. Nothing waits on the host, so a whole step, traffic included, can be recorded and started at once. `nccl` is the one there is; a build
// without it says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "comm/communicator.h"
#include "comm/device_choice.h"

namespace convoy {

// One piece of traffic with its memory bound, all of it the device's.
struct DeviceCall {
    // Bytes that are put in their place before the traffic: copied, or zero where there is no source.
    struct Fill {
        std::byte* dst = nullptr;
        const std::byte* src = nullptr;
        size_t bytes = 0;
    };

    Lane lane = Lane::Gradient;
    std::string layer;
    std::vector<Fill> before;
    // A collective of a group (AllReduce, ReduceScatter, AllGather, Broadcast) ...
    std::vector<Rank> group;
    CollectiveCall call;          // its counts are below
    std::vector<int64_t> counts;  // by place, where the kind has them
    // ... or, when the kind is Transfer, what this rank sends and receives. Tags are not looked at: between two ranks the order counts.
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
};

class BoundTraffic {
  public:
    virtual ~BoundTraffic() = default;
    // Puts it into its lane's stream, to begin when what `stream` holds now is done.
    virtual void start(void* stream) = 0;
    // What is put into `stream` from now on begins when this is done. It was started since the last recording began, if one is being made.
    virtual void join(void* stream) = 0;
    // It will run once: now that it is started, or as part of a recording. Comes before that; counts bytes and sets the time limit going.
    virtual void expect() = 0;
};

class DeviceTraffic {
  public:
    virtual ~DeviceTraffic() = default;
    // "NCCL 2.28.9"
    virtual const std::string& name() const = 0;
    // Connects the devices of these groups, on these lanes, and on those lanes of `transfers` every rank with every other. All ranks call it at the same
    // time; each lists the groups it belongs to.
    virtual void open(const std::vector<std::pair<Lane, std::vector<Rank>>>& groups, const std::vector<Lane>& transfers) = 0;
    // Bug when its group was not opened. What it refers to must outlive it.
    virtual std::unique_ptr<BoundTraffic> bind(const DeviceCall& call) = 0;
    // Error once traffic was given up: it took too long, the library reports a failure, or another rank ended the run.
    virtual void check() = 0;
};

struct DeviceTrafficStatus {
    bool ready = false;
    std::string detail;  // "NCCL 2.28.9", or why it is absent
};
// What this build has. Starts nothing.
DeviceTrafficStatus nccl_status();

// A rank's ends of all lanes, and how to make communicators of the host's.
struct HostLanes {
    std::array<Channel*, kLanes> channels{};
    Communicators* communicators = nullptr;
};
// Connects the devices of all ranks by NCCL, or says why it cannot be (an Error whose text is NCCL's own). All ranks call it at the same time. What it
// refers to must outlive it. Error when this build has no NCCL.
std::unique_ptr<DeviceTraffic> make_nccl_traffic(const DeviceEndpoint& device, const HostLanes& host);

// NCCL where it can be, as `wanted` says; null when traffic goes through host memory. All ranks call it at the same time. The first rank says in one line
// which GPU every rank has and what carries their traffic, and why. Error when NCCL was wanted and cannot be.
std::unique_ptr<DeviceTraffic> connect_devices(const DeviceEndpoint& device, const HostLanes& host, DeviceTransport wanted);

}  // namespace convoy
