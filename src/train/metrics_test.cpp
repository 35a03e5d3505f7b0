#include "train/metrics.h"

#include "base/json.h"
#include "train/testing.h"

namespace convoy {
namespace {

class MetricsFileTest : public TrainTest {
  protected:
    std::string text() const { return read_file(dir_ / "metrics.jsonl"); }
    void put_lines(const std::string& more = "") {
        MetricsFile file(dir_, {});
        for (int64_t step = 1; step <= 4; ++step) {
            file.append({{"kind", "step"}, {"step", step}});
            if (step % 2 == 0) file.append({{"kind", "epoch"}, {"step", step}, {"epoch", step / 2}});
        }
        file.sync();
        write_file(dir_ / "metrics.jsonl", text() + more);
    }
};

const std::string kFirst = R"({"kind":"step","step":1})"
                           "\n"
                           R"({"kind":"step","step":2})"
                           "\n";
const std::string kEpoch = R"({"kind":"epoch","step":2,"epoch":1})"
                           "\n";
const std::string kThird = R"({"kind":"step","step":3})"
                           "\n";

TEST_F(MetricsFileTest, DropsWhatLaterStepsWrote) {
    put_lines();
    MetricsFile file(dir_, {.step = 3, .epoch = 1, .batch = 1});
    EXPECT_EQ(text(), kFirst + kEpoch + kThird);
    file.append({{"kind", "step"}, {"step", 9}});
    EXPECT_EQ(text(), kFirst + kEpoch + kThird +
                          R"({"kind":"step","step":9})"
                          "\n");
}

// A checkpoint before the validation of its epoch: the epoch's line will be written again.
TEST_F(MetricsFileTest, DropsTheEpochThatIsNotFinished) {
    put_lines();
    const MetricsFile file(dir_, {.step = 2, .epoch = 0, .batch = 2});
    EXPECT_EQ(text(), kFirst);
}

TEST_F(MetricsFileTest, DropsALineThatWasCutOff) {
    put_lines(R"({"kind":"st)");
    const MetricsFile file(dir_, {.step = 4, .epoch = 2});
    EXPECT_EQ(text().substr(0, (kFirst + kEpoch + kThird).size()), kFirst + kEpoch + kThird);
    EXPECT_EQ(text().back(), '\n');
    EXPECT_EQ(text().find(R"("st)"
                          "\n"),
              std::string::npos);
}

TEST_F(MetricsFileTest, ARunThatBeginsAnewBeginsEmpty) {
    put_lines();
    const MetricsFile file(dir_, {});
    EXPECT_EQ(text(), "");
}

TEST_F(MetricsFileTest, AFullDiskIsAnErrorAndLeavesWholeLines) {
    MetricsFile file(dir_, {});
    file.append({{"kind", "step"}, {"step", 1}});
    const std::string before = text();
    {
        const FullDisk limit(before.size() + 10);
        expect_parts(error_of([&] { file.append({{"kind", "step"}, {"step", 2}}); }), {"cannot write", "metrics.jsonl"});
    }
    EXPECT_EQ(text(), before);
    file.append({{"kind", "step"}, {"step", 2}});
    EXPECT_EQ(text(), kFirst);
}

TEST(Metrics, a_row_of_the_table_has_every_column) {
    const std::string row = csv_row({{"kind", "step"}, {"step", 3}, {"loss", 0.5}, {"lr", 0.1}, {"unknown", 1}, {"watts", 400.5}});
    EXPECT_EQ(row, "step,3,,0.5,,,,,,,0.1,,,,,,,400.5\n");
}

}  // namespace
}  // namespace convoy
