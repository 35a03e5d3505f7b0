#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/backend.h"

namespace convoy {
namespace {

std::string message_of(const std::string& name) {
    try {
        make_backend(name, {});
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Registry, ReferenceIsAlwaysReady) {
    EXPECT_EQ(make_backend("reference", {.threads = 2})->target().name(), "reference");
    EXPECT_TRUE(backend_statuses().at(0).ready);
}

TEST(Registry, UnknownNameIsAnsweredWithASuggestion) {
    const auto message = message_of("referense");
    EXPECT_NE(message.find("unknown backend \"referense\""), std::string::npos) << message;
    EXPECT_NE(message.find("did you mean \"reference\"?"), std::string::npos) << message;
}

TEST(Registry, StatusesSayWhatTargetsComputeIn) {
    for (const auto& status : backend_statuses()) {
        if (!status.ready) continue;
        const auto backend = make_backend(status.name, {});
        for (const DType type : {DType::f64, DType::f32, DType::tf32, DType::bf16}) {
            const bool said = std::find(status.types.begin(), status.types.end(), type) != status.types.end();
            if (said)
                EXPECT_NO_THROW(backend->target().storage(Element::Real, type)) << status.name << " " << name_of(type);
            else
                EXPECT_THROW(backend->target().storage(Element::Real, type), Error) << status.name << " " << name_of(type);
        }
    }
}

TEST(Registry, OnlyWhatIsNotReadyIsFaulty) {
    for (const auto& status : backend_statuses()) EXPECT_FALSE(status.ready && status.faulty) << status.name;
}

TEST(Registry, WhatIsNotReadySaysWhy) {
    for (const auto& status : backend_statuses()) {
        if (status.ready) continue;
        const auto message = message_of(status.name);
        EXPECT_NE(message.find(status.name), std::string::npos) << message;
        EXPECT_NE(message.find(status.detail), std::string::npos) << message;
    }
    EXPECT_EQ(backend_statuses().size(), 3u);
}

}  // namespace
}  // namespace convoy
