#include "data/gzip.h"

#include <algorithm>

#include <zlib.h>

#include "base/error.h"

namespace convoy {

namespace {

constexpr size_t kFirstBuffer = size_t{1} << 16;
constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts in 32 bits

class Inflater {
  public:
    explicit Inflater(std::string_view packed) : rest_(packed) {
        const int result = inflateInit2(&stream_, 15 + 16);  // the largest window, gzip framing
        require(result == Z_OK, "cannot start zlib: error {}", result);
    }
    ~Inflater() { inflateEnd(&stream_); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    // Writes up to `room` bytes, adds their number to `used`, and returns zlib's result.
    int step(char* out, size_t room, size_t& used) {
        if (stream_.avail_in == 0) {
            const size_t piece = std::min(rest_.size(), kMostAtOnce);
            stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
            stream_.avail_in = static_cast<uInt>(piece);
            rest_.remove_prefix(piece);
        }
        const size_t offered = std::min(room, kMostAtOnce);
        stream_.next_out = reinterpret_cast<Bytef*>(out);
        stream_.avail_out = static_cast<uInt>(offered);
        const int result = inflate(&stream_, Z_NO_FLUSH);
        used += offered - stream_.avail_out;
        return result;
    }

    // What has not been consumed; only the piece at hand, which is enough to see what comes next.
    std::string_view left() const {
        return stream_.avail_in ? std::string_view(reinterpret_cast<const char*>(stream_.next_in), stream_.avail_in) : rest_;
    }
    const char* message() const { return stream_.msg ? stream_.msg : "invalid data"; }
    void restart() { inflateReset(&stream_); }

  private:
    z_stream stream_{};
    std::string_view rest_;
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

std::string gunzip(std::string_view packed, int64_t most, const std::string& name) {
    const auto limit = static_cast<size_t>(most);
    Inflater inflater(packed);
    std::string out;
    size_t used = 0;
    while (used < limit) {
        if (used == out.size()) out.resize(std::min(limit, std::max(kFirstBuffer, 2 * used)));
        const int result = inflater.step(out.data() + used, out.size() - used, used);
        if (result == Z_STREAM_END) {
            if (inflater.left().empty()) break;
            require(is_gzip(inflater.left()), "{}: corrupt gzip data: other bytes follow the end of the stream", name);
            inflater.restart();
            continue;
        }
        if (result == Z_OK) continue;
        require(result != Z_BUF_ERROR, "{}: truncated: the gzip data end early, after {} uncompressed bytes", name, used);
        fail("{}: corrupt gzip data after {} uncompressed bytes: {}", name, used, inflater.message());
    }
    out.resize(used);
    return out;
}

}  // namespace convoy
