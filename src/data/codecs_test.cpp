// Pictures, HDF5 files and archives: what is written is read again, and what is damaged is refused by name.
#include <cmath>

#include <zlib.h>

#include "data/archive/archive.h"
#include "data/hdf5/hdf5.h"
#include "data/jpeg/jpeg.h"
#include "data/png/png.h"
#include "data/test_archives.h"
#include "data/test_files.h"

namespace convoy {
namespace {

// Smooth, as photographs are: what JPEG loses of it is little.
Pixels smooth_picture(int64_t width, int64_t height) {
    Pixels pixels;
    pixels.resize({width, height});
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x)
            for (int64_t c = 0; c < 3; ++c)
                pixels.row(y)[3 * x + c] = static_cast<uint8_t>(128 + 100 * std::sin(0.05 * static_cast<double>(x + c * y)));
    return pixels;
}

class CodecsTest : public DataFilesTest {
  protected:
    void SetUp() override {
        if (!has_jpeg() || !has_hdf5() || !has_archives()) GTEST_SKIP() << "this build lacks libjpeg-turbo, HDF5 or libarchive";
        DataFilesTest::SetUp();
    }
};

TEST_F(CodecsTest, PngIsExact) {
    const Pixels picture = smooth_picture(37, 21);
    const std::string bytes = encode_png(picture);
    EXPECT_TRUE(is_png(bytes));
    EXPECT_FALSE(is_jpeg(bytes));
    EXPECT_EQ(png_size(bytes, "p"), (ImageSize{37, 21}));
    Pixels again;
    decode_png(bytes, again, "p");
    EXPECT_EQ(again.size, picture.size);
    EXPECT_EQ(again.rgb, picture.rgb);
    for (const size_t length : {size_t{0}, size_t{7}, size_t{20}, bytes.size() / 2, bytes.size() - 20})
        expect_parts(error_of([&] { decode_png(std::string_view(bytes).substr(0, length), again, "some.png"); }),
                     {"some.png", "corrupt PNG"});
    std::string changed = bytes;
    changed[bytes.size() / 2] ^= 1;
    expect_parts(error_of([&] { decode_png(changed, again, "some.png"); }), {"some.png", "corrupt PNG"});
}

TEST_F(CodecsTest, PicturesLargerThanTheirFilesCanHoldAreRefusedBeforeMemoryIsTaken) {
    Pixels black, again;
    black.resize({300, 200});
    const auto with = [](std::string bytes, size_t at, std::initializer_list<int> values) {
        for (const int value : values) bytes[at++] = static_cast<char>(value);
        return bytes;
    };
    // As well packed as can be is still a picture.
    const std::string png = encode_png(black), jpeg = encode_jpeg(black, 1);
    decode_png(png, again, "black.png");
    EXPECT_EQ(again.size, black.size);
    JpegDecoder decoder;
    decoder.decode(jpeg, 8, again, "black.jpg");
    EXPECT_EQ(again.size, black.size);

    Pixels none;
    std::string large = with(png, 16, {0, 0, 0x1f, 0x40, 0, 0, 0x1f, 0x40});  // 8000x8000; the checksum covers it
    const uint32_t sum = static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(large.data() + 12), 17));
    large = with(
        large, 29,
        {static_cast<int>(sum >> 24), static_cast<int>(sum >> 16 & 255), static_cast<int>(sum >> 8 & 255), static_cast<int>(sum & 255)});
    expect_parts(error_of([&] { decode_png(large, none, "large.png"); }), {"large.png", "too few for 8000x8000 pixels"});

    const size_t frame = jpeg.find("\xff\xc0");
    ASSERT_NE(frame, std::string::npos);
    large = with(jpeg, frame + 5, {0x1f, 0x40, 0x1f, 0x40});
    expect_parts(error_of([&] { decoder.size(large, "large.jpg"); }), {"large.jpg", "too few for 8000x8000 pixels"});
    EXPECT_EQ(none.rgb.capacity(), 0u);
}

TEST_F(CodecsTest, JpegAtEveryScale) {
    const Pixels picture = smooth_picture(160, 96);
    const std::string bytes = encode_jpeg(picture, 90);
    EXPECT_TRUE(is_jpeg(bytes));
    JpegDecoder decoder;
    EXPECT_EQ(decoder.size(bytes, "j"), (ImageSize{160, 96}));
    for (int eighths = 1; eighths <= 8; ++eighths) {
        Pixels small;
        decoder.decode(bytes, eighths, small, "j");
        ASSERT_EQ(small.size, (ImageSize{20 * eighths, 12 * eighths}));
        double error = 0;
        for (int64_t y = 0; y < small.size.height; ++y)
            for (int64_t x = 0; x < small.size.width; ++x)
                error +=
                    std::abs(small.row(y)[3 * x] - picture.row((2 * y + 1) * 8 / (2 * eighths))[3 * ((2 * x + 1) * 8 / (2 * eighths))]);
        EXPECT_LT(error / static_cast<double>(small.size.width * small.size.height), 20) << eighths;
    }
}

// What lies in the part is what the whole picture has there, but for colours at its very edge.
TEST_F(CodecsTest, PartsOfAJpeg) {
    const std::string bytes = encode_jpeg(smooth_picture(163, 97), 90);
    JpegDecoder decoder;
    for (const int eighths : {8, 4, 2}) {
        Pixels whole, piece;
        decoder.decode(bytes, eighths, whole, "j");
        for (const PixelBox& part : {PixelBox{0, 0, 10, 10}, PixelBox{5, 3, 20, 9}, PixelBox{0, 7, whole.size.width, 4},
                                     PixelBox{whole.size.width - 9, whole.size.height - 5, 9, 5}}) {
            const PixelBox found = decoder.decode(bytes, eighths, part, piece, "j");
            ASSERT_LE(found.x, part.x);
            ASSERT_GE(found.x + found.width, part.x + part.width);
            ASSERT_EQ(found.y, part.y);
            ASSERT_EQ(piece.size, (ImageSize{found.width, part.height}));
            for (int64_t y = 0; y < part.height; ++y)
                for (int64_t x = part.x + 2; x < part.x + part.width - 2; ++x)
                    for (int64_t c = 0; c < 3; ++c)
                        ASSERT_EQ(piece.row(y)[3 * (x - found.x) + c], whole.row(part.y + y)[3 * x + c]) << eighths << " " << x << " " << y;
        }
    }
}

TEST_F(CodecsTest, DamagedJpegIsRefused) {
    const std::string bytes = encode_jpeg(smooth_picture(160, 96), 90);
    JpegDecoder decoder;
    Pixels pixels;
    for (const size_t length : {size_t{0}, size_t{3}, size_t{50}, bytes.size() / 2, bytes.size() - 10})
        expect_parts(error_of([&] { decoder.decode(std::string_view(bytes).substr(0, length), 8, pixels, "some.jpg"); }),
                     {"some.jpg", "corrupt JPEG"});
    decoder.decode(bytes, 8, pixels, "some.jpg");  // the decoder still works
}

TEST_F(CodecsTest, Hdf5BoxesAndAttributes) {
    Tensor x(Shape{2, 6, 5, 4}, DType::f32), y(Shape{6, 5, 4}, DType::u8);
    for (int64_t i = 0; i < x.numel(); ++i) x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i) / 8;
    for (int64_t i = 0; i < y.numel(); ++i) y.as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(i % 3);
    for (const Shape& chunk : {Shape{}, Shape{1, 3, 5, 2}}) {
        Hdf5Writer writer(dir_ / "a.h5");
        writer.write("x", x, chunk);
        writer.write("y", y);
        writer.write("scalar", Tensor::of<int32_t>({}, {7}));
        writer.attribute("y", "classes", 3);
        writer.commit();
        const Hdf5File file(dir_ / "a.h5");
        EXPECT_EQ(file.names(), (std::vector<std::string>{"scalar", "x", "y"}));
        EXPECT_EQ(file.array("y").dtype, DType::u8);
        EXPECT_EQ(file.attribute("y", "classes"), 3);
        EXPECT_EQ(file.attribute("y", "other"), std::nullopt);
        EXPECT_EQ(file.read("x"), x);
        EXPECT_EQ(file.read("scalar").as<int32_t>()[0], 7);
        const Box box{{0, 2, 0, 1}, {2, 3, 5, 2}};
        EXPECT_EQ(file.read("x", box), part_of(x, box));
    }
    expect_parts(error_of([&] { Hdf5File(dir_ / "a.h5").array("z"); }), {"a.h5", "\"z\"", "scalar, x, y"});
    expect_parts(error_of([&] { Hdf5File(put("text.h5", "nothing of the kind")); }), {"text.h5", "not a readable HDF5 file"});
    expect_parts(error_of([&] { Hdf5File(dir_ / "none.h5"); }), {"none.h5", "no such file"});
    const std::string bytes = read_file(dir_ / "a.h5");
    expect_parts(error_of([&] { Hdf5File(put("cut.h5", bytes.substr(0, bytes.size() / 2))); }), {"cut.h5"});
}

TEST_F(CodecsTest, Hdf5ArraysLargerThanTheirFileCanHoldAreRefused) {
    Tensor x(Shape{7, 64, 32, 16}, DType::u8);
    std::fill_n(x.as<uint8_t>().data(), x.numel(), uint8_t{0});
    const auto dims = [](uint64_t first) {
        std::string bytes(16, '\0');
        bytes[8] = 64;
        std::memcpy(bytes.data(), &first, sizeof first);
        return bytes;
    };
    for (const Shape& chunk : {Shape{}, Shape{7, 64, 32, 16}}) {
        Hdf5Writer writer(dir_ / "a.h5");
        writer.write("x", x, chunk);
        writer.commit();
        EXPECT_EQ(Hdf5File(dir_ / "a.h5").read("x"), x);  // zeros, packed as well as can be
        const std::string bytes = read_file(dir_ / "a.h5");
        for (const uint64_t first : {uint64_t{1} << 20, uint64_t{1} << 61, ~uint64_t{0} - 1}) {
            std::string changed = bytes;
            for (size_t at = 0; (at = changed.find(dims(7), at)) != std::string::npos;) changed.replace(at, 16, dims(first));
            ASSERT_NE(changed, bytes);
            expect_parts(error_of([&] { Hdf5File(put("large.h5", changed)).array("x"); }), {"large.h5"});
        }
        if (!chunk.empty()) continue;
        // Where it lies: version 3, contiguous, an address, a size. As of version 1, the library would crash over it.
        std::string place(8, '\0');
        const int64_t size = x.bytes();
        std::memcpy(place.data(), &size, sizeof size);
        const size_t at = bytes.find(place);
        ASSERT_TRUE(at != std::string::npos && at >= 10 && bytes[at - 10] == 3 && bytes[at - 9] == 1);
        std::string changed = bytes;
        changed[at - 10] = 1;
        expect_parts(error_of([&] { Hdf5File(put("place.h5", changed)).array("x"); }), {"place.h5", "\"x\""});
        changed = bytes;
        changed[at - 1] = 1;  // far outside of the file
        expect_parts(error_of([&] { Hdf5File(put("place.h5", changed)).array("x"); }), {"place.h5", "outside"});
    }
}

TEST_F(CodecsTest, TarEntries) {
    const std::string tar =
        tar_entry("a/1.cls", "3") + tar_entry("a/1.jpg", std::string(700, 'x')) + tar_entry("a/2.cls", "") + std::string(1024, '\0');
    const Archive archive(put("s.tar", tar));
    ASSERT_EQ(archive.entries().size(), 3u);
    EXPECT_EQ(archive.entries()[0].name, "a/1.cls");
    EXPECT_EQ(archive.entries()[0].bytes, "3");
    EXPECT_EQ(archive.entries()[1].bytes, std::string(700, 'x'));
    EXPECT_EQ(archive.entries()[2].bytes, "");
    expect_parts(error_of([&] { Archive(put("cut.tar", tar.substr(0, 1500))); }), {"cut.tar"});
    expect_parts(error_of([&] { Archive(put("no.tar", std::string(2000, 'n'))); }), {"no.tar"});
    expect_parts(error_of([&] { Archive(put("empty.tar", "")); }), {"empty.tar", "empty"});
}

}  // namespace
}  // namespace convoy
