#include "comm/socket/interfaces.h"

#include <arpa/inet.h>

#include <gtest/gtest.h>

#include <vector>

namespace convoy {

namespace {

uint32_t ip(const char* text) {
    in_addr in{};
    EXPECT_EQ(inet_pton(AF_INET, text, &in), 1);
    return in.s_addr;
}
Interface at(const char* address, const char* mask, int speed = 0) { return {ip(address), ip(mask), speed}; }

TEST(Interfaces, TheFastestCommonNetworkIsTaken) {
    const std::vector<Interface> ours{at("10.0.0.1", "255.255.255.0", 1000), at("10.1.0.1", "255.255.0.0", 25000)};
    const std::vector<Interface> theirs{at("10.0.0.2", "255.255.255.0", 1000), at("10.1.7.2", "255.255.0.0", 10000)};
    EXPECT_EQ(reachable(ours, theirs, false), ip("10.1.7.2"));
    const std::vector<Interface> unknown{at("10.1.7.2", "255.255.0.0"), at("10.0.0.2", "255.255.255.0")};
    EXPECT_EQ(reachable(ours, unknown, false), ip("10.1.7.2")) << "the first, where no speed is known";
}

TEST(Interfaces, AnAddressThatIsOursLeadsToOurselves) {
    const std::vector<Interface> ours{at("172.17.0.1", "255.255.0.0", 10000), at("10.0.0.1", "255.255.255.0", 1000)};
    const std::vector<Interface> theirs{at("172.17.0.1", "255.255.0.0", 10000), at("10.0.0.2", "255.255.255.0", 1000)};
    EXPECT_EQ(reachable(ours, theirs, false), ip("10.0.0.2"));
    const std::vector<Interface> routed{at("172.17.0.1", "255.255.0.0", 10000), at("10.9.0.2", "255.255.255.0", 1000)};
    EXPECT_EQ(reachable(ours, routed, false), ip("10.9.0.2"));
    EXPECT_EQ(reachable(ours, std::vector{ours[0]}, false), std::nullopt);
    EXPECT_EQ(reachable(ours, std::vector{ours[0]}, true), ip("172.17.0.1"));
}

TEST(Interfaces, AreNamedByNameOrNetwork) {
    const uint32_t address = ip("10.1.2.3");
    EXPECT_TRUE(names_interface("eth1,eth0", "eth0", address));
    EXPECT_TRUE(names_interface("eth1,10.1.0.0/16", "eth0", address));
    EXPECT_TRUE(names_interface("0.0.0.0/0", "eth0", address));
    for (const char* other : {"eth", "eth00", "10.2.0.0/16", "10.1.0.0", "10.1.0.0/", "10.1.0.0/33", "10.1.0.0/16x", "", ",,"})
        EXPECT_FALSE(names_interface(other, "eth0", address)) << other;
}

}  // namespace

}  // namespace convoy
