// A rank's place among the others: its transport, one channel for each lane, and the communicators its programs need. Shared by all programs of the rank.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "comm/device_traffic.h"
#include "exec/put_off.h"

namespace convoy {

class Link {
  public:
    // The transport must outlive the link.
    explicit Link(Transport& transport, std::chrono::milliseconds limit = Channel::kDefaultLimit);

    Rank rank() const { return transport_.rank(); }
    int size() const { return transport_.size(); }
    Transport& transport() { return transport_; }
    Channel& channel(Lane lane) { return *channels_[static_cast<size_t>(lane)]; }

    // What the communicators made from now on choose their algorithms by; the same on every rank. Starts as the transport's defaults.
    void set_table(CollectiveTable table) { communicators_.set_table(std::move(table)); }

    using Group = std::pair<Lane, std::vector<Rank>>;
    // Makes the communicators of these groups, where they are not there yet. Collective over the groups; every rank lists all that it belongs to, in any
    // order.
    void open(const std::vector<Group>& groups);
    // A communicator of a group on a lane; made when first asked for, which is collective over the group.
    Communicator& communicator(Lane lane, const std::vector<Rank>& group);
    // All ranks, on the service lane.
    Communicator& everyone();

    // What is to carry traffic between GPUs; the same on every rank.
    void set_device_transport(DeviceTransport wanted) { wanted_ = wanted; }
    DeviceTransport device_transport() const { return wanted_; }
    // How GPUs are connected: connect_devices, unless a test has something to put in its place.
    using Connect = std::function<std::unique_ptr<DeviceTraffic>(const DeviceEndpoint&, const HostLanes&, DeviceTransport)>;
    void set_connect(Connect connect) { connect_ = std::move(connect); }
    // How the GPUs of all ranks reach each other by themselves; null when their traffic goes through host memory. Decided when first asked for, which all
    // ranks do at the same time; from then on every rank keeps its GPU.
    DeviceTraffic* device_traffic(const DeviceEndpoint& device);

    // Steps whose traffic may still be under way, and whose updates come before anyone else looks.
    PutOff& put_off() { return put_off_; }

    // Whether the ranks fill the one machine that they are on. Collectives are then work for the very processors that they could hide behind, so executors do them on the
    // thread that computes, when their results are needed. The same on every rank; for executors made from now on.
    void set_fills_machine(bool fills) { fills_machine_ = fills; }
    bool fills_machine() const { return fills_machine_; }

  private:
    Transport& transport_;
    PutOff put_off_;
    bool fills_machine_ = false;
    std::array<std::unique_ptr<Channel>, kLanes> channels_;
    Communicators communicators_;
    DeviceTransport wanted_ = DeviceTransport::Auto;
    Connect connect_ = connect_devices;
    std::optional<int> device_;  // the GPU, once it was asked for
    std::unique_ptr<DeviceTraffic> device_traffic_;
};

}  // namespace convoy
