#include "app/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include <unistd.h>

#include "base/error.h"

namespace convoy {

namespace {

constexpr std::array<uint32_t, 256> make_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78u : 0u);
        table[i] = c;
    }
    return table;
}
constexpr auto kTable = make_table();

template <class T>
std::string raw(T value) {  // little-endian, as the machine is
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

// Protocol buffers: a field is its number and wire type, then the value.
enum Wire : uint32_t { kVarint = 0, kEight = 1, kLength = 2, kFour = 5 };

std::string varint(uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
}
std::string key(uint32_t field, Wire wire) { return varint(field << 3 | wire); }
std::string number(uint32_t field, int64_t value) { return key(field, kVarint) + varint(static_cast<uint64_t>(value)); }
std::string real(uint32_t field, double value) { return key(field, kEight) + raw(value); }
std::string real32(uint32_t field, float value) { return key(field, kFour) + raw(value); }
std::string text(uint32_t field, std::string_view bytes) { return key(field, kLength) + varint(bytes.size()) + std::string(bytes); }
std::string reals(uint32_t field, const std::vector<double>& values) {
    return text(field, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)});
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// The limits of buckets on both sides of zero, rising.
const std::vector<double>& bucket_limits() {
    static const std::vector<double> limits = [] {
        std::vector<double> rising;
        for (double v = 1e-12; v < 1e20; v *= 1.1) rising.push_back(v);
        std::vector<double> all;
        for (auto at = rising.rbegin(); at != rising.rend(); ++at) all.push_back(-*at);
        all.push_back(0);
        all.insert(all.end(), rising.begin(), rising.end());
        all.push_back(std::numeric_limits<double>::max());
        return all;
    }();
    return limits;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
    uint32_t c = ~0u;
    for (const char byte : bytes) c = (c >> 8) ^ kTable[(c ^ static_cast<unsigned char>(byte)) & 0xFF];
    return ~c;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

std::string event_record(std::string_view bytes) {
    const std::string length = raw(uint64_t{bytes.size()});
    return length + raw(masked_crc32c(length)) + std::string(bytes) + raw(masked_crc32c(bytes));
}

Histogram histogram_of(std::span<const float> values) {
    const std::vector<double>& limits = bucket_limits();
    Histogram h;
    if (values.empty()) return h;
    h.min = std::numeric_limits<double>::max();
    h.max = std::numeric_limits<double>::lowest();
    std::vector<double> counts(limits.size());
    for (const float v : values) {
        const double value = v;
        h.min = std::min(h.min, value);
        h.max = std::max(h.max, value);
        h.sum += value;
        h.sum_squares += value * value;
        ++counts[static_cast<size_t>(std::lower_bound(limits.begin(), limits.end(), value) - limits.begin())];
    }
    h.count = static_cast<double>(values.size());
    // From the empty bucket before the first filled one, whose limit is where that one begins, to the last filled one.
    size_t begin = 0, end = counts.size();
    while (counts[begin] == 0) ++begin;
    while (counts[end - 1] == 0) --end;
    if (begin > 0) --begin;
    const auto at = [](auto& list, size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); };
    h.limits.assign(at(limits, begin), at(limits, end));
    h.counts.assign(at(counts, begin), at(counts, end));
    return h;
}

EventFile::EventFile(const std::filesystem::path& directory) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    path_ = directory / fmt::format("events.out.tfevents.{}.{}.{}", static_cast<int64_t>(now()), host.data(), ::getpid());
    file_ = std::fopen(path_.c_str(), "wb");
    require(file_ != nullptr, "cannot write {}: {}", path_.string(), std::strerror(errno));
    const std::string first = real(1, now()) + text(3, "brain.Event:2");
    const std::string record = event_record(first);
    std::fwrite(record.data(), 1, record.size(), file_);
}

EventFile::~EventFile() { std::fclose(file_); }

void EventFile::event(int64_t step, const std::string& rest) {
    const std::string record = event_record(real(1, now()) + number(2, step) + rest);
    std::fwrite(record.data(), 1, record.size(), file_);  // failures are seen by flush
}

void EventFile::summary(int64_t step, const std::string& value) { event(step, text(5, text(1, value))); }

void EventFile::restart(int64_t step) { event(step, text(7, number(1, 1))); }

void EventFile::scalar(int64_t step, std::string_view tag, double value) {
    summary(step, text(1, tag) + real32(2, static_cast<float>(value)));
}

void EventFile::image(int64_t step, std::string_view tag, int width, int height, std::string_view png) {
    constexpr int kRgb = 3;
    summary(step, text(1, tag) + text(4, number(1, height) + number(2, width) + number(3, kRgb) + text(4, png)));
}

void EventFile::histogram(int64_t step, std::string_view tag, const Histogram& h) {
    const std::string body = real(1, h.min) + real(2, h.max) + real(3, h.count) + real(4, h.sum) + real(5, h.sum_squares) +
                             reals(6, h.limits) + reals(7, h.counts);
    summary(step, text(1, tag) + text(5, body));
}

void EventFile::flush() {
    require(std::fflush(file_) == 0 && std::ferror(file_) == 0, "cannot write {}: {}", path_.string(), std::strerror(errno));
}

}  // namespace convoy
