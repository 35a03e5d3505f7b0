#include "data/idx.h"

#include <zlib.h>

#include "data/test_files.h"

namespace convoy {
namespace {

std::string gzipped(const std::string& bytes) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string bytes_of(std::initializer_list<int> values) {
    std::string bytes;
    for (const int v : values) bytes += static_cast<char>(v);
    return bytes;
}

class IdxTest : public DataFilesTest {
  protected:
    std::string message(const std::string& bytes) const {
        return error_of([&] { read_idx(put_quickly("x", bytes)); });
    }
};

TEST_F(IdxTest, ReadsEveryType) {
    EXPECT_EQ(read_idx(put("a", bytes_of({0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 255}))), Tensor::of<uint8_t>({1, 3}, {7, 8, 255}));
    EXPECT_EQ(read_idx(put("a", bytes_of({0, 0, 9, 1, 0, 0, 0, 2, 255, 127}))), Tensor::of<int32_t>({2}, {-1, 127}));
    EXPECT_EQ(read_idx(put("a", bytes_of({0, 0, 11, 1, 0, 0, 0, 2, 255, 254, 1, 2}))), Tensor::of<int32_t>({2}, {-2, 258}));
    EXPECT_EQ(read_idx(put("a", bytes_of({0, 0, 12, 1, 0, 0, 0, 1, 255, 255, 255, 253}))), Tensor::of<int32_t>({1}, {-3}));
    EXPECT_EQ(read_idx(put("a", bytes_of({0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}))), Tensor::of<float>({1}, {1.5f}));
    EXPECT_EQ(read_idx(put("a", bytes_of({0, 0, 14, 1, 0, 0, 0, 1, 0xbf, 0xf8, 0, 0, 0, 0, 0, 0}))), Tensor::of<double>({1}, {-1.5}));
}

TEST_F(IdxTest, RoundTripsPlainAndGzipped) {
    const Tensor tensors[] = {Tensor::of<uint8_t>({2, 3}, {1, 2, 3, 4, 5, 6}), Tensor::of<int32_t>({2}, {-70000, 5}),
                              Tensor::of<float>({1, 1, 2}, {0.1f, -3e30f}), Tensor::of<double>({2}, {1e300, -0.0}),
                              Tensor(Shape{0, 28, 28}, DType::u8)};
    for (const auto& t : tensors) {
        EXPECT_EQ(read_idx(put("a", encode_idx(t))), t);
        EXPECT_EQ(read_idx(put("a", gzipped(encode_idx(t)))), t);
    }
    EXPECT_THROW(encode_idx(Tensor(Shape{2}, DType::i64)), Error);
    EXPECT_THROW(encode_idx(Tensor(Shape{}, DType::u8)), Error);
}

TEST_F(IdxTest, GzipStreamsMayFollowEachOther) {
    const std::string bytes = encode_idx(Tensor::of<uint8_t>({4}, {1, 2, 3, 4}));
    EXPECT_EQ(read_idx(put("a", gzipped(bytes.substr(0, 5)) + gzipped(bytes.substr(5)))).numel(), 4);
    expect_parts(message(gzipped(bytes) + "junk"), {"corrupt gzip"});
}

TEST_F(IdxTest, MessagesNameFileExpectedAndFound) {
    expect_parts(error_of([&] { read_idx(dir_ / "none"); }), {"none", "No such file"});
    expect_parts(error_of([&] { read_idx(dir_); }), {"directory"});
    expect_parts(message("P5 28 28"), {"/x:", "00 00", "50 35"});
    expect_parts(message(bytes_of({0, 0, 10, 1, 0, 0, 0, 0})), {"/x:", "0x0a", "0x08 (u8)"});
    expect_parts(message(bytes_of({0, 0, 8, 0})), {"1 to 8 dims", "found 0"});
    expect_parts(message(bytes_of({0, 0, 8, 9})), {"1 to 8 dims", "found 9"});
    expect_parts(message(bytes_of({0, 0, 8, 2, 0, 0, 0, 1})), {"truncated", "12 bytes for 2 dims", "found 8"});
    expect_parts(message(bytes_of({0, 0, 8, 1, 0, 0, 0, 5, 1, 2})), {"truncated", "expected 13 bytes", "found 10"});
    expect_parts(message(bytes_of({0, 0, 8, 1, 0, 0, 0, 1, 1, 2})), {"trailing", "expected 9 bytes", "found 10"});
    expect_parts(message(gzipped(bytes_of({0, 0, 8, 1, 0, 0, 0, 5, 1, 2}))), {"truncated", "expected 13 bytes", "found 10"});
    expect_parts(message(gzipped(bytes_of({0, 0, 8, 1, 0, 0, 0, 1, 1, 2}))), {"trailing", "expected 9 uncompressed bytes"});
}

TEST_F(IdxTest, HugeClaimsAreRefusedBeforeAllocating) {
    const std::string most = bytes_of({255, 255, 255, 255});
    const std::string four_gigabytes = bytes_of({0, 0, 8, 1}) + most + "abc", overflow = bytes_of({0, 0, 14, 3}) + most + most + most;
    const std::string hidden = bytes_of({0, 0, 8, 4, 0, 0, 0, 0}) + most + most + most;  // no elements, but strides that overflow
    for (const auto& bytes : {four_gigabytes, overflow, hidden}) {
        EXPECT_NE(message(bytes), "");
        EXPECT_NE(message(gzipped(bytes)), "");
    }
    expect_parts(message(four_gigabytes), {"truncated", "expected 4294967303 bytes", "found 11"});
    expect_parts(message(overflow), {"impossible shape"});
    // A small file that inflates to far more than its header promises is not inflated to the end.
    const std::string bomb = gzipped(bytes_of({0, 0, 8, 1, 0, 0, 0, 1}) + std::string(5'000'000, '\0'));
    EXPECT_LT(bomb.size(), 10'000u);
    expect_parts(message(bomb), {"trailing"});
}

TEST_F(IdxTest, DamageIsRefused) {
    const std::string bytes = encode_idx(Tensor::of<int32_t>({2, 3}, {1, -2, 3, -4, 5, -6}));
    expect_damage_is_refused(bytes, [](const auto& path) { read_idx(path); });
    expect_damage_is_refused(gzipped(bytes), [](const auto& path) { read_idx(path); });
}

}  // namespace
}  // namespace convoy
