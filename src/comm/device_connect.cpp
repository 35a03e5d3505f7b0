#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/log.h"
#include "comm/device_traffic.h"

namespace convoy {

namespace {

// What each rank tells the others, as bytes of one size.
struct Card {
    int32_t number = 0, nccl = 0;
    std::array<char, 64> identity{};
    std::array<char, 96> name{}, detail{};
};

template <size_t N>
void put(std::array<char, N>& field, const std::string& text) {
    std::copy_n(text.data(), std::min(text.size(), N - 1), field.data());
}

std::vector<RankDevice> everyones_devices(const DeviceEndpoint& device, Communicator& everyone) {
    const DeviceTrafficStatus status = nccl_status();
    Card own{.number = device.number, .nccl = status.ready};
    put(own.identity, device.identity);
    put(own.name, device.name);
    put(own.detail, status.detail);
    std::vector<Card> cards(static_cast<size_t>(everyone.size()));
    const std::vector<int64_t> counts(cards.size(), sizeof(Card));
    everyone.all_gather(reinterpret_cast<const std::byte*>(&own), reinterpret_cast<std::byte*>(cards.data()), counts, DType::u8);
    std::vector<RankDevice> devices;
    for (size_t r = 0; r < cards.size(); ++r) {
        const Card& card = cards[r];
        RankDevice& rank = devices.emplace_back();
        rank.device.number = card.number;
        rank.device.identity = card.identity.data();
        rank.device.name = card.name.data();
        rank.node = everyone.channel().transport().nodes()[r];
        rank.nccl = card.nccl != 0;
        rank.nccl_detail = card.detail.data();
    }
    return devices;
}

// The text of the first rank that has one.
std::string first_text(const std::string& own, Communicator& everyone) {
    constexpr size_t kLength = 400;
    std::vector<std::array<char, kLength>> texts(static_cast<size_t>(everyone.size()));
    std::array<char, kLength> mine{};
    put(mine, own);
    const std::vector<int64_t> counts(texts.size(), kLength);
    everyone.all_gather(reinterpret_cast<const std::byte*>(mine.data()), reinterpret_cast<std::byte*>(texts.data()), counts, DType::u8);
    for (const auto& text : texts)
        if (text[0] != '\0') return text.data();
    return "";
}

}  // namespace

std::unique_ptr<DeviceTraffic> connect_devices(const DeviceEndpoint& device, const HostLanes& host, DeviceTransport wanted) {
    Channel& service = *host.channels[static_cast<size_t>(Lane::Service)];
    std::vector<Rank> all(static_cast<size_t>(service.transport().size()));
    std::iota(all.begin(), all.end(), 0);
    host.communicators->open({{&service, all}});
    Communicator& everyone = host.communicators->at(service, all);
    const std::vector<RankDevice> devices = everyones_devices(device, everyone);
    std::string why = wanted == DeviceTransport::Host ? "as asked for" : why_not_nccl(devices);
    std::unique_ptr<DeviceTraffic> traffic;
    if (why.empty()) {
        std::string refused;
        try {
            traffic = make_nccl_traffic(device, host);
        } catch (const RunFailed&) {
            throw;
        } catch (const Error& e) {
            refused = e.what();
        }
        why = first_text(refused, everyone);
        if (!why.empty()) traffic.reset();
    }
    require(traffic || wanted != DeviceTransport::Nccl, "NCCL cannot carry the traffic between the GPUs: {}", why);
    if (service.transport().rank() == 0)
        note("{}; their traffic goes {}", devices_text(devices),
             traffic ? "by " + traffic->name() : fmt::format("through host memory ({})", why));
    return traffic;
}

}  // namespace convoy
