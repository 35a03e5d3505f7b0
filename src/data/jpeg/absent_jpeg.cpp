// For builds without libjpeg-turbo.
#include "base/error.h"
#include "data/jpeg/jpeg.h"

namespace convoy {

namespace {

[[noreturn]] void absent(const std::string& name) {
    fail("{}: this build cannot read or write JPEG; install libjpeg-turbo (Debian: libjpeg62-turbo-dev) and build again", name);
}

}  // namespace

struct JpegDecoder::Impl {};
JpegDecoder::JpegDecoder() = default;
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

bool has_jpeg() { return false; }

bool is_jpeg(std::string_view bytes) { return bytes.substr(0, 3) == "\xff\xd8\xff"; }
ImageSize JpegDecoder::size(std::string_view, const std::string& name) { absent(name); }
ImageSize JpegDecoder::scaled(ImageSize size, int) { return size; }
PixelBox JpegDecoder::decode(std::string_view, int, const PixelBox&, Pixels&, const std::string& name) { absent(name); }
void JpegDecoder::decode(std::string_view, int, Pixels&, const std::string& name) { absent(name); }
std::string encode_jpeg(const Pixels&, int) { absent("JPEG"); }

}  // namespace convoy
