// Event files as TensorBoard reads them: records of protocol buffers, each with its length and checksums. Only the few messages that are needed,
// encoded here, so that no protocol compiler is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

// CRC-32C (Castagnoli), and the form of it that records carry.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

// One record: length, checksum of the length, the bytes, their checksum.
std::string event_record(std::string_view bytes);

struct Histogram {
    double min = 0, max = 0, count = 0, sum = 0, sum_squares = 0;
    std::vector<double> limits, counts;  // values up to limits[i], and above limits[i-1]; the last limit is the largest double
    bool operator==(const Histogram&) const = default;
};
// Buckets that grow by a tenth from 1e-12 on, on both sides of zero; empty ones beside the filled ones are left out. Values are finite.
Histogram histogram_of(std::span<const float> values);

class EventFile {
  public:
    // A new file DIRECTORY/events.out.tfevents.TIME.HOST.PID. Error when it cannot be written.
    explicit EventFile(const std::filesystem::path& directory);
    ~EventFile();
    EventFile(const EventFile&) = delete;
    EventFile& operator=(const EventFile&) = delete;

    const std::filesystem::path& path() const { return path_; }

    // What earlier files say of this and later steps no longer counts.
    void restart(int64_t step);
    void scalar(int64_t step, std::string_view tag, double value);
    // A PNG of this size.
    void image(int64_t step, std::string_view tag, int width, int height, std::string_view png);
    void histogram(int64_t step, std::string_view tag, const Histogram& histogram);
    // Error when what was written did not reach the file.
    void flush();

  private:
    void summary(int64_t step, const std::string& value);
    void event(int64_t step, const std::string& rest);

    std::filesystem::path path_;
    std::FILE* file_ = nullptr;
};

}  // namespace convoy
