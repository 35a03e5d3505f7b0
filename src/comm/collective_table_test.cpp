#include "comm/collective_table.h"
#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {

namespace {

CollectiveTable example() {
    CollectiveTable table;
    table.set({Traffic::AllReduce, 4, true, 1 << 20, Algorithm::Ring});
    table.set({Traffic::AllReduce, 4, true, 4096, Algorithm::RecursiveDoubling});
    table.set({Traffic::AllReduce, 8, true, 4096, Algorithm::Tree});
    table.set({Traffic::AllReduce, 32, false, 4096, Algorithm::Hierarchical});
    return table;
}

TEST(CollectiveTable, ChoosesByKindThenNearestGroupThenBytes) {
    const CollectiveTable table = example();
    EXPECT_EQ(table.choose(Traffic::AllReduce, 4, true, 100), Algorithm::RecursiveDoubling);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 4, true, 4096), Algorithm::RecursiveDoubling);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 4, true, 4097), Algorithm::Ring);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 4, true, 1 << 30), Algorithm::Ring);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 2, true, 100), Algorithm::RecursiveDoubling);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 6, true, 100), Algorithm::Tree) << "the larger of two equally near";
    EXPECT_EQ(table.choose(Traffic::AllReduce, 64, true, 1 << 30), Algorithm::Tree);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 4, false, 100), Algorithm::Hierarchical) << "nodes come before size";
    EXPECT_EQ(table.choose(Traffic::AllGather, 4, true, 100), Algorithm::Library) << "nothing is known";
}

TEST(CollectiveTable, ReplacesAnEntry) {
    CollectiveTable table = example();
    table.set({Traffic::AllReduce, 4, true, 4096, Algorithm::Tree});
    EXPECT_EQ(table.entries().size(), 4U);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 4, true, 1), Algorithm::Tree);
}

TEST(CollectiveTable, AMeasuredOneReplacesWhatItCovers) {
    CollectiveTable table = example(), measured;
    table.set({Traffic::Broadcast, 4, true, 4096, Algorithm::Tree});
    measured.set({Traffic::AllReduce, 2, true, 1 << 16, Algorithm::Rabenseifner});
    table.replace(measured);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 8, true, 100), Algorithm::Rabenseifner) << "all of its kind on one node";
    EXPECT_EQ(table.choose(Traffic::AllReduce, 32, false, 100), Algorithm::Hierarchical) << "not those on several";
    EXPECT_EQ(table.choose(Traffic::Broadcast, 4, true, 1), Algorithm::Tree);
}

TEST(CollectiveTable, GoesThroughJson) {
    for (const CollectiveTable& table : {example(), CollectiveTable::defaults("mpi"), CollectiveTable::defaults("thread")})
        EXPECT_EQ(collective_table_from_json(to_json(table)), table);
}

TEST(CollectiveTable, SaysWhatIsWrong) {
    CollectiveTable table;
    EXPECT_THROW(table.set({Traffic::AllReduce, 2, true, 1, Algorithm::Bruck}), Error);
    EXPECT_THROW(collective_table_from_json(Json::parse(R"({"entries": [{"collective": "all_reduce"}]})")), Error);
    EXPECT_THROW(collective_table_from_json(Json::parse(
                     R"({"entries": [{"collective": "all_reduce", "ranks": 0, "nodes": "one", "up_to_bytes": 1, "algorithm": "ring"}]})")),
                 Error);
}

}  // namespace

}  // namespace convoy
