#include "app/event_file.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <unistd.h>

#include <gtest/gtest.h>

#include "app/tensorboard.h"
#include "base/file.h"

namespace convoy {
namespace {

// The records of a file, each checked against its two checksums.
std::vector<std::string> records_of(const std::string& bytes) {
    std::vector<std::string> records;
    for (size_t at = 0; at < bytes.size();) {
        uint64_t length = 0;
        uint32_t length_sum = 0, sum = 0;
        std::memcpy(&length, bytes.data() + at, 8);
        std::memcpy(&length_sum, bytes.data() + at + 8, 4);
        EXPECT_EQ(length_sum, masked_crc32c({bytes.data() + at, 8}));
        records.push_back(bytes.substr(at + 12, length));
        std::memcpy(&sum, bytes.data() + at + 12 + length, 4);
        EXPECT_EQ(sum, masked_crc32c(records.back()));
        at += 16 + length;
    }
    return records;
}

TEST(EventFile, checksums_are_castagnolis) {
    EXPECT_EQ(crc32c("123456789"), 0xE3069283u);  // the published check value
    EXPECT_EQ(crc32c(""), 0u);
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
    EXPECT_EQ(masked_crc32c("123456789"), ((0xE3069283u >> 15 | 0xE3069283u << 17) + 0xA282EAD8u));
}

TEST(EventFile, histograms_count_every_value_once) {
    const std::vector<float> values{-1.5f, 0, 0, 1e-20f, 0.25f, 0.25f, 3e30f};
    const Histogram h = histogram_of(values);
    EXPECT_EQ(h.count, 7);
    EXPECT_EQ(h.min, -1.5);
    EXPECT_EQ(h.max, 3e30f);
    EXPECT_EQ(std::accumulate(h.counts.begin(), h.counts.end(), 0.0), 7);
    ASSERT_EQ(h.limits.size(), h.counts.size());
    for (size_t i = 1; i < h.limits.size(); ++i) {
        EXPECT_LT(h.limits[i - 1], h.limits[i]);
        double inside = 0;
        for (const float v : values) inside += v > h.limits[i - 1] && v <= h.limits[i];
        EXPECT_EQ(h.counts[i], inside) << i;
    }
    EXPECT_EQ(histogram_of({}).count, 0);
    EXPECT_EQ(histogram_of(std::vector<float>(5, 0.f)).counts.back(), 5);
}

TEST(EventFile, writes_records_that_read_back) {
    const auto directory = std::filesystem::temp_directory_path() / ("convoy-events-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory);
    std::filesystem::path path;
    {
        EventFile file(directory);
        path = file.path();
        file.scalar(300, "train/loss", 0.5);
        file.histogram(300, "w", histogram_of(std::vector<float>{1, 2}));
        file.flush();
    }
    const auto records = records_of(read_file(path));
    std::filesystem::remove_all(directory);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_NE(records[0].find("\x1a\x0d"
                              "brain.Event:2"),
              std::string::npos);
    // step 300 (field 2), then summary (5) { value (1) { tag (1), simple_value (2) = 0.5f } }
    EXPECT_EQ(records[1].substr(9), std::string("\x10\xac\x02\x2a\x13\x0a\x11\x0a\x0atrain/loss\x15\x00\x00\x00\x3f", 24));
}

TEST(TensorBoard, shows_the_middle_of_a_volume_and_colours) {
    Tensor volume({2, 1, 4, 2, 3}, DType::f32);
    volume.as<float>()[24 + 2 * 6 + 1] = 2;  // sample 1, slice 2, row 0, column 1
    const Image grey = picture_of(volume, 1);
    EXPECT_EQ(grey.width, 3);
    EXPECT_EQ(grey.height, 2);
    EXPECT_EQ(grey.at(1, 0), (Color{255, 255, 255}));
    EXPECT_EQ(grey.at(0, 0), (Color{0, 0, 0}));
    Tensor colours({1, 3, 1, 2}, DType::f32);
    colours.as<float>()[2] = 1;  // green of the left pixel
    EXPECT_EQ(picture_of(colours, 0).at(0, 0), (Color{0, 255, 0}));
}

}  // namespace
}  // namespace convoy
