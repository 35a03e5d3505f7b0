#include "app/table.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoBlanksAtTheEnd) {
    Table table({{"name"}, {"n", Table::Align::Right}, {"note"}});
    table.add({"a", "1", ""});
    table.add({"longer", "1,000", "x"});
    EXPECT_EQ(table.text(),
              "name        n  note\n"
              "------  -----  ----\n"
              "a           1\n"
              "longer  1,000  x\n");
}

TEST(Numbers, Grouped) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(61706), "61,706");
    EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

TEST(Numbers, ShortNumbersHaveThreeDigits) {
    EXPECT_EQ(short_number(17), "17");
    EXPECT_EQ(short_number(1.5), "1.50");
    EXPECT_EQ(short_number(421248), "421 k");
    EXPECT_EQ(short_number(999.6), "1.00 k");
    EXPECT_EQ(short_number(1.8142e9), "1.81 G");
    EXPECT_EQ(short_number(18.14e9), "18.1 G");
    EXPECT_EQ(short_bytes(12), "12 B");
    EXPECT_EQ(short_bytes(46827520), "46.8 MB");
}

TEST(Numbers, ShortTimes) {
    EXPECT_EQ(short_time(0.84), "0.8 s");
    EXPECT_EQ(short_time(41.6), "42 s");
    EXPECT_EQ(short_time(185), "3:05 min");
    EXPECT_EQ(short_time(8020), "2:13:40 h");
}

}  // namespace
}  // namespace convoy
