#include "app/collective_cache.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

namespace convoy {

namespace {

class CollectiveCache : public testing::Test {
  protected:
    void SetUp() override {
        directory_ = std::filesystem::temp_directory_path() / ("convoy-collectives-" + std::to_string(::getpid()));
        setenv("CONVOY_CACHE", directory_.c_str(), 1);
    }
    void TearDown() override {
        unsetenv("CONVOY_CACHE");
        std::filesystem::remove_all(directory_);
    }

    std::filesystem::path directory_;
    CollectiveSetting mpi_{"mpi", "mpi", {0, 1}, "a machine"}, sockets_{"mpi", "sockets", {0, 1}, "a machine"};
};

CollectiveTable table_of(const CollectiveTable::Entry& entry) {
    CollectiveTable table;
    table.set(entry);
    return table;
}

constexpr CollectiveTable::Entry kReduce{Traffic::AllReduce, 2, false, 1 << 20, Algorithm::Tree};
constexpr CollectiveTable::Entry kGather{Traffic::AllGather, 2, false, 1 << 20, Algorithm::Bruck};

TEST_F(CollectiveCache, IsKeptByWhatCarriesMessagesBetweenNodes) {
    EXPECT_EQ(cache_file(mpi_), directory_ / "collectives-mpi-1+1.json");
    EXPECT_EQ(cache_file(sockets_), directory_ / "collectives-mpi-sockets-1+1.json");
    EXPECT_EQ(cache_file({"thread", "thread", {0, 0}, ""}), directory_ / "collectives-thread-2.json");
    save(sockets_, table_of(kReduce));
    EXPECT_EQ(known_table(sockets_).choose(Traffic::AllReduce, 2, false, 1000), Algorithm::Tree);
    EXPECT_EQ(known_table(mpi_), CollectiveTable::defaults("mpi"));
    write_file(cache_file(mpi_), read_file(cache_file(sockets_)));
    EXPECT_EQ(known_table(mpi_), CollectiveTable::defaults("mpi")) << "it says that it is of the other";
}

TEST_F(CollectiveCache, KeepsWhatWasMeasuredBefore) {
    save(mpi_, table_of(kReduce));
    save(mpi_, table_of(kGather));
    EXPECT_EQ(known_table(mpi_).choose(Traffic::AllReduce, 2, false, 1000), Algorithm::Tree);
    EXPECT_EQ(known_table(mpi_).choose(Traffic::AllGather, 2, false, 1000), Algorithm::Bruck);
    CollectiveTable::Entry again = kReduce;
    again.algorithm = Algorithm::Ring;
    save(mpi_, table_of(again));
    EXPECT_EQ(known_table(mpi_).choose(Traffic::AllReduce, 2, false, 1000), Algorithm::Ring);
}

TEST_F(CollectiveCache, AnotherMachinesIsReplaced) {
    CollectiveSetting other = mpi_;
    other.machine = "another";
    save(other, table_of(kReduce));
    save(mpi_, table_of(kGather));
    EXPECT_EQ(known_table(mpi_).choose(Traffic::AllReduce, 2, false, 1000),
              CollectiveTable::defaults("mpi").choose(Traffic::AllReduce, 2, false, 1000));
    write_file(cache_file(mpi_), "{");
    EXPECT_EQ(known_table(mpi_), CollectiveTable::defaults("mpi"));
    save(mpi_, table_of(kGather));
    EXPECT_EQ(known_table(mpi_).choose(Traffic::AllGather, 2, false, 1000), Algorithm::Bruck);
}

}  // namespace

}  // namespace convoy
