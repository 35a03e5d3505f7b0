#include "base/parse_json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

TEST(ParseJson, refuses_what_is_none_and_what_is_too_deep) {
    EXPECT_EQ(parse_json("[1, {\"a\": null}]", "x").size(), 2u);
    EXPECT_THROW(parse_json("", "x"), Error);
    EXPECT_THROW(parse_json("{", "x"), Error);
    EXPECT_THROW(parse_json("[1] 2", "x"), Error);
    const auto nested = [](int depth) {
        return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
    };
    EXPECT_NO_THROW(parse_json(nested(kMostJsonDepth), "x"));
    try {
        parse_json(nested(100'000), "plan.json");
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "plan.json: it is nested more than 64 deep");
    }
}

TEST(ParseJson, FaultsAreSaidWithoutTheLibrarysNumbers) {
    try {
        Json::object().at("layers");
        FAIL();
    } catch (const Json::exception& e) {
        EXPECT_EQ(fault_of(e), "key 'layers' not found");
    }
}

}  // namespace
}  // namespace convoy
