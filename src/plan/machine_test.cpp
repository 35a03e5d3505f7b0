#include "plan/machine.h"
#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

std::string error_of(const Json& json) {
    try {
        machine_from_json(json);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Machine, PresetsAreValidAndSurviveJson) {
    for (const auto& name : machine_presets()) {
        const Machine machine = machine_preset(name);
        validate(machine);
        EXPECT_EQ(machine_from_json(to_json(machine)), machine) << name;
    }
}

TEST(Machine, AnUnknownPresetIsRefusedWithTheNearest) {
    try {
        machine_preset("v10");
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("did you mean \"v100\""), std::string::npos) << e.what();
    }
}

TEST(Machine, MissingAndAbsurdNumbersAreNamed) {
    const Json good = to_json(machine_preset("v100"));
    const auto changed = [&](auto&& change) {
        Json json = good;
        change(json);
        return error_of(json);
    };
    const auto has = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
    EXPECT_PRED2(has, changed([](Json& j) { j["links"][0].erase("bandwidth"); }), "links[0] has no \"bandwidth\"");
    EXPECT_PRED2(has, changed([](Json& j) { j["links"][1]["latency"] = -1; }), "latency is -1");
    EXPECT_PRED2(has, changed([](Json& j) { j["devices"][0]["memory_bandwidth"] = "fast"; }), "expected a number");
    EXPECT_PRED2(has, changed([](Json& j) { j["devices"][0]["memory_bytes"] = 16; }), "memory_bytes is 16");
    EXPECT_PRED2(has, changed([](Json& j) { j["devices"][0]["rates"]["f32"]["measured"] = 1e15; }), "above its peak");
    EXPECT_PRED2(has, changed([](Json& j) { j["nodes"][0]["device"] = "T4"; }), "names the device \"T4\"");
    EXPECT_PRED2(has, changed([](Json& j) { j["nodes"][0]["devcies"] = 4; }), "did you mean \"devices\"");
    EXPECT_PRED2(has, changed([](Json& j) { j["network"] = "token ring"; }), "token ring");
    EXPECT_PRED2(has, changed([](Json& j) { j["nodes"][0]["devices"] = 0; }), "devices is 0");
    EXPECT_PRED2(has, error_of(Json::array()), "expected an object");
}

TEST(Machine, RanksFillUnevenNodesInOrder) {
    Machine machine = machine_preset("v100");
    machine.nodes[0].count = 1;
    machine.nodes.push_back({.name = "small", .count = 2, .devices = 2});
    EXPECT_EQ(seats(machine), 8);
    const auto seats = seating(machine, 7);
    ASSERT_EQ(seats.size(), 7u);
    EXPECT_EQ(seats[3].node, 0);
    EXPECT_EQ(seats[4].node, 1);
    EXPECT_EQ(seats[4].ranks_here, 2);
    EXPECT_EQ(seats[6].node, 2);
    EXPECT_EQ(seats[6].ranks_here, 1);
    EXPECT_EQ(nodes_for(machine, 5), 2);
    EXPECT_THROW(seating(machine, 9), Error);
}

}  // namespace
}  // namespace convoy
