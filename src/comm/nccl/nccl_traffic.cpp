// Traffic between GPUs by NCCL: communicators by lane and group, the streams they run in, and the watch over them. The host's transport carries what
// NCCL needs to find the others.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "comm/nccl/lane_stream.h"
#include "comm/nccl/nccl_group.h"

namespace convoy {

namespace {

using GroupName = std::pair<Lane, std::vector<Rank>>;

constexpr std::chrono::minutes kConnect{1};

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

std::string version_text() {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "ncclGetVersion");
    return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// What a rank sends; NCCL is charged what a bandwidth-optimal algorithm does.
int64_t sent_bytes(const DeviceCall& bound, Rank rank) {
    int64_t bytes = 0;
    for (const Outgoing& m : bound.sends) bytes += static_cast<int64_t>(m.data.size());
    if (bound.call.kind == Traffic::Transfer || bound.group.size() == 1) return bytes;
    const auto place = std::find(bound.group.begin(), bound.group.end(), rank) - bound.group.begin();
    return optimal_bytes(bound.call, static_cast<int>(place), static_cast<int>(bound.group.size()));
}

class NcclTraffic : public DeviceTraffic {
  public:
    NcclTraffic(const DeviceEndpoint& device, const HostLanes& host)
        : host_(host), device_(device.number), name_(version_text()), world_(static_cast<size_t>(transport().size())) {
        std::iota(world_.begin(), world_.end(), 0);
        // What a rank does by itself comes first, and all hear whether it went well everywhere: whoever gave up alone would leave the others waiting.
        std::string refused;
        try {
            use();
            for (size_t lane = 0; lane < lanes_.size(); ++lane) {
                lanes_[lane] = std::make_unique<LaneStream>();
                marks_[lane] = &lanes_[lane]->marks();
            }
        } catch (const Error& e) {
            refused = e.what();
        }
        int32_t ready = refused.empty();
        service(world_).all_reduce(reinterpret_cast<std::byte*>(&ready), 1, DType::i32, ReduceOp::Min);
        require(refused.empty(), "{}", refused);
        require(ready, "another rank could not prepare its GPU for traffic");
        add_group({Lane::Gradient, world_});
        watch_.emplace(
            transport(), marks_,
            DeviceWatch::Options{
                .limit = channel(Lane::Gradient).limit(), .trouble = [this] { return trouble(); }, .give_up = [this] { abort_all(); }});
    }

    ~NcclTraffic() override {
        watch_.reset();
        cudaSetDevice(device_);
    }

    const std::string& name() const override { return name_; }

    void open(const std::vector<GroupName>& groups, const std::vector<Lane>& transfers) override {
        watch_->check();
        use();
        std::set<GroupName> wanted(groups.begin(), groups.end());
        std::array<int32_t, kLanes> everyone{};  // a rank without transfers takes part in connecting all
        for (const Lane lane : transfers) everyone[static_cast<size_t>(lane)] = 1;
        service(world_).all_reduce(reinterpret_cast<std::byte*>(everyone.data()), kLanes, DType::i32, ReduceOp::Max);
        for (int lane = 0; lane < kLanes; ++lane)
            if (everyone[static_cast<size_t>(lane)]) wanted.emplace(static_cast<Lane>(lane), world_);
        for (const GroupName& name : wanted)  // in the same order everywhere
            if (!groups_.count(name)) add_group(name);
    }

    std::unique_ptr<BoundTraffic> bind(const DeviceCall& call) override;

    void check() override { watch_->check(); }

    void use() const { check_cuda(cudaSetDevice(device_), "cudaSetDevice"); }
    Transport& transport() const { return channel(Lane::Service).transport(); }
    Channel& channel(Lane lane) const { return *host_.channels[static_cast<size_t>(lane)]; }
    LaneStream& lane(Lane lane) { return *lanes_[static_cast<size_t>(lane)]; }
    DeviceWatch& watch() { return *watch_; }

  private:
    Communicator& service(const std::vector<Rank>& group) {
        Channel& service = channel(Lane::Service);
        host_.communicators->open({{&service, group}});
        return host_.communicators->at(service, group);
    }

    // The id travels by the host's transport, whatever that is.
    void add_group(const GroupName& name) {
        const auto& group = name.second;
        Communicator& host = service(group);
        struct {
            ncclUniqueId id;
            int32_t ready;
        } first{};
        std::string refused = "another rank has no id of NCCL's";
        if (host.place() == 0) {
            const ncclResult_t status = ncclGetUniqueId(&first.id);
            first.ready = status == ncclSuccess;
            if (!first.ready) refused = "ncclGetUniqueId: " + nccl_text(status);
        }
        host.broadcast(reinterpret_cast<std::byte*>(&first), sizeof(first), DType::u8, 0);
        require(first.ready, "{}", refused);
        // Connecting is given up well before those wait too long who have heard that it cannot be.
        const auto limit = channel(name.first).limit();
        const auto ended = [this] {
            if (const auto failure = transport().failure()) throw RunFailed(*failure);
        };
        auto made = std::make_unique<NcclGroup>(first.id, host.size(), host.place(),
                                                NcclGroup::Limits{std::min<std::chrono::milliseconds>(limit / 3, kConnect), limit, ended});
        const std::lock_guard lock(mutex_);
        groups_.emplace(name, std::move(made));
    }

    std::string trouble() {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, group] : groups_)
            if (std::string text = group->trouble(); !text.empty()) return text;
        return "";
    }

    void abort_all() {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, group] : groups_) group->abort();
    }

    HostLanes host_;
    int device_;
    std::string name_;
    std::vector<Rank> world_;
    std::array<std::unique_ptr<LaneStream>, kLanes> lanes_;
    std::array<DeviceMarks*, kLanes> marks_{};
    std::mutex mutex_;  // of the groups: the watch looks at them too
    std::map<GroupName, std::unique_ptr<NcclGroup>> groups_;
    std::optional<DeviceWatch> watch_;
};

class NcclBound : public BoundTraffic {
  public:
    NcclBound(NcclTraffic& traffic, NcclGroup& group, DeviceCall call)
        : traffic_(traffic), group_(group), lane_(traffic.lane(call.lane)), call_(std::move(call)) {
        call_.call.counts = call_.counts;
        Channel& channel = traffic.channel(call_.lane);
        label_ = channel.label_of(call_.layer);
        bytes_ = sent_bytes(call_, channel.transport().rank());
        watched_ = std::make_shared<WatchedTraffic>(watched(channel.transport()));
    }

    void start(void* stream) override {
        traffic_.watch().check();
        traffic_.use();
        ready_.order(stream_of(stream), lane_.stream());
        lane_.mark_begun();
        for (const DeviceCall::Fill& fill : call_.before) {
            if (fill.src)
                check_cuda(cudaMemcpyAsync(fill.dst, fill.src, fill.bytes, cudaMemcpyDeviceToDevice, lane_.stream()), "cudaMemcpyAsync");
            else
                check_cuda(cudaMemsetAsync(fill.dst, 0, fill.bytes, lane_.stream()), "cudaMemsetAsync");
        }
        group_.enqueue(call_, lane_.stream());
        lane_.mark_done();
        done_.record(lane_.stream());
    }

    void join(void* stream) override { done_.wait(stream_of(stream)); }

    void expect() override {
        Channel& channel = traffic_.channel(call_.lane);
        channel.set_label(label_);
        channel.charge(call_.call.kind, bytes_);
        traffic_.watch().expect(call_.lane, watched_);
    }

  private:
    // Ranks of a transfer meet in pairs: each has as many of them with the other.
    WatchedTraffic watched(Transport& transport) const {
        const bool transfer = call_.call.kind == Traffic::Transfer;
        std::set<Rank> peers;
        for (const Outgoing& m : call_.sends) peers.insert(m.to);
        for (const Incoming& m : call_.receives) peers.insert(m.from);
        peers.erase(transport.rank());
        WatchedTraffic result;
        for (const Rank peer : peers)
            result.meetings.push_back(
                make_meeting(transport, {std::min(peer, transport.rank()), std::max(peer, transport.rank())}, call_.lane));
        if (!transfer) result.meetings.push_back(make_meeting(transport, call_.group, call_.lane));
        result.what = fmt::format("{} {} on the {} queue ({} {})", transfer ? "a transfer" : name_of(call_.call.kind),
                                  Channel::describe(call_.layer), name_of(call_.lane), transfer ? "with ranks" : "ranks",
                                  transfer ? fmt::format("{}", fmt::join(peers, ", ")) : fmt::format("{}", fmt::join(call_.group, ", ")));
        return result;
    }

    NcclTraffic& traffic_;
    NcclGroup& group_;
    LaneStream& lane_;
    DeviceCall call_;
    Channel::Label label_{};
    int64_t bytes_ = 0;
    std::shared_ptr<const WatchedTraffic> watched_;
    StreamEvent ready_, done_;
};

std::unique_ptr<BoundTraffic> NcclTraffic::bind(const DeviceCall& call) {
    use();
    const GroupName name{call.lane, call.call.kind == Traffic::Transfer ? world_ : call.group};
    const auto at = groups_.find(name);
    CONVOY_CHECK(at != groups_.end(), "no devices of ranks {} were connected on the {} lane", fmt::join(name.second, ", "),
                 name_of(name.first));
    return std::make_unique<NcclBound>(*this, *at->second, call);
}

}  // namespace

DeviceTrafficStatus nccl_status() { return {true, version_text()}; }

std::unique_ptr<DeviceTraffic> make_nccl_traffic(const DeviceEndpoint& device, const HostLanes& host) {
    return std::make_unique<NcclTraffic>(device, host);
}

}  // namespace convoy
