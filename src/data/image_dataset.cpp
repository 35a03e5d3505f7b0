#include "data/image_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "data/jpeg/jpeg.h"
#include "data/png/png.h"
#include "data/resample.h"
#include "data/whole_sample.h"

namespace convoy {

namespace {

constexpr int64_t kUsualSize = 224, kUsualResize = 256;

// What is cut out of a picture, and whether it is turned round.
struct Cut {
    SourceRect rect;
    bool flip = false;
};

// A part of random area and shape; what never fits in ten tries is the largest part in the middle.
SourceRect random_part(ImageSize size, double least_area, SampleRandom& random) {
    const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
    for (int attempt = 0; attempt < 10; ++attempt) {
        const double area = width * height * random.uniform(least_area, 1);
        const double ratio = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
        const double w = std::round(std::sqrt(area * ratio)), h = std::round(std::sqrt(area / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        return {static_cast<double>(random.below(static_cast<int64_t>(width - w) + 1)),
                static_cast<double>(random.below(static_cast<int64_t>(height - h) + 1)), w, h};
    }
    const double w = std::min(width, height * 4 / 3), h = std::min(height, width * 4 / 3);
    return {(width - w) / 2, (height - h) / 2, w, h};
}

// The picture is thought of with its short side made `resize` long, and a window of `to` put on it.
SourceRect window(ImageSize size, ImageSize to, int64_t resize, SampleRandom* random) {
    const int64_t least = std::min(size.width, size.height);
    const auto scaled = [&](int64_t side) { return std::max<int64_t>(1, side * resize / least); };
    const int64_t width = std::max(to.width, scaled(size.width)), height = std::max(to.height, scaled(size.height));
    const auto place = [&](int64_t room) { return static_cast<double>(random ? random->below(room + 1) : room / 2); };
    const double x = place(width - to.width), y = place(height - to.height);
    const double sx = static_cast<double>(size.width) / static_cast<double>(width);
    const double sy = static_cast<double>(size.height) / static_cast<double>(height);
    return {x * sx, y * sy, static_cast<double>(to.width) * sx, static_cast<double>(to.height) * sy};
}

// In eighths: the smallest scale at which the part still has the pixels that are wanted.
int scale_for(const SourceRect& rect, ImageSize to) {
    for (const int eighths : {1, 2, 4})
        if (rect.width * eighths >= 8 * static_cast<double>(to.width) && rect.height * eighths >= 8 * static_cast<double>(to.height))
            return eighths;
    return 8;
}

// The pixels that resampling a part looks at, and a few more, because colours of a JPEG are smoothed over neighbours.
PixelBox needed(const SourceRect& rect, ImageSize to, ImageSize size) {
    constexpr int64_t kMargin = 4;
    const auto range = [](double begin, double length, int64_t out, int64_t limit) {
        const double reach = std::max(1.0, length / static_cast<double>(out));
        const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(begin - reach)) - kMargin);
        const int64_t end = std::min<int64_t>(limit, static_cast<int64_t>(std::ceil(begin + length + reach)) + kMargin);
        return std::pair(first, end - first);
    };
    const auto [x, width] = range(rect.x, rect.width, to.width, size.width);
    const auto [y, height] = range(rect.y, rect.height, to.height, size.height);
    return {x, y, width, height};
}

// Brightness, contrast and saturation, in this order, of planes of numbers 0..255.
void jitter(float* planes, int64_t count, double amount, SampleRandom& random) {
    const auto factor = [&] { return static_cast<float>(random.uniform(1 - amount, 1 + amount)); };
    const auto clamp = [](float v) { return std::clamp(v, 0.0F, 255.0F); };
    const auto grey = [&](int64_t i) { return 0.299F * planes[i] + 0.587F * planes[count + i] + 0.114F * planes[2 * count + i]; };
    const float bright = factor(), contrast = factor(), saturation = factor();
    for (int64_t i = 0; i < 3 * count; ++i) planes[i] = clamp(planes[i] * bright);
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += grey(i);
    const auto mean = static_cast<float>(sum / static_cast<double>(count));
    for (int64_t i = 0; i < 3 * count; ++i) planes[i] = clamp(mean + (planes[i] - mean) * contrast);
    for (int64_t i = 0; i < count; ++i) {
        const float level = grey(i);
        for (int64_t c = 0; c < 3; ++c) planes[c * count + i] = clamp(level + (planes[c * count + i] - level) * saturation);
    }
}

struct ImageScratch : WholeSample {
    using WholeSample::WholeSample;
    JpegDecoder jpeg;
    std::string buffer;
    Pixels pixels;
    Resampler resampler;
    std::vector<float> planes;
};

class ImageDataset final : public Dataset {
  public:
    ImageDataset(std::unique_ptr<ImageSource> source, const ImageOptions& options)
        : source_(std::move(source)), info_(options.info), transform_(options.transform), strict_(options.strict) {
        if (transform_.size.empty()) transform_.size = {kUsualSize, kUsualSize};
        const Shape& size = transform_.size;
        require(size.size() == 2, "dataset \"{}\" has pictures; expected a height and a width, found {}", info_.name, to_string(size));
        require(!transform_.augment.rotate && transform_.augment.pad == 0,
                "dataset \"{}\" has pictures of any size: rot90 and the padding of random-crop are not for them", info_.name);
        require_channels(transform_.normalize, 3, info_.name);
        to_ = {size[1], size[0]};
        if (transform_.resize == 0)
            transform_.resize =
                std::max<int64_t>(std::max(to_.width, to_.height), std::min(to_.width, to_.height) * kUsualResize / kUsualSize);
        require(transform_.resize >= std::min(to_.width, to_.height), "dataset \"{}\": pictures with a short side of {} have no part of {}",
                info_.name, transform_.resize, to_string(size));
        info_.input = {3, size[0], size[1]};
        info_.target = TargetKind::Class;
        info_.target_shape = {};
        const bool resized = transform_.augment.crop == CropKind::RandomResized;
        info_.transforms = fmt::format("{}{}{}, normalize {}", resized ? "" : fmt::format("resize {}, ", transform_.resize),
                                       transform_.augment == Augment{} ? "centre-crop " : to_string(transform_.augment) + " ",
                                       to_string(size), to_string(transform_.normalize));
        require_valid(info_);
        for (int64_t c = 0; c < 3; ++c) {
            factor_[static_cast<size_t>(c)] = 1 / (255 * transform_.normalize.deviation_of(c));
            offset_[static_cast<size_t>(c)] = -transform_.normalize.mean_of(c) / transform_.normalize.deviation_of(c);
        }
    }

    const DatasetInfo& info() const override { return info_; }
    int64_t size() const override { return source_->size(); }
    std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<ImageScratch>(info_); }

    int64_t read_sample(SampleId id, const SampleOut& out, Scratch* scratch) const override {
        auto& own = static_cast<ImageScratch&>(*scratch);
        int64_t bytes = 0;
        std::string why;
        for (int64_t attempt = 0; attempt < 2 * size(); ++attempt) {
            const int64_t index = stand_in(id.index, attempt);
            if (index < 0 || known_as_bad(index)) continue;
            try {
                own.read(out, [&](std::byte* input, std::byte* target) { bytes += read_one(index, id, out, own, input, target); });
                return bytes;
            } catch (const Error& error) {
                if (strict_) throw;
                skip(index, error.what());
                why = error.what();
            }
        }
        fail("dataset \"{}\": none of the pictures of this split can be read; {}", info_.name, why.empty() ? "all are damaged" : why);
    }

    std::string describe(int64_t index) const override {
        std::string buffer;
        const std::string name = source_->name(index);
        try {
            const ImageSize size = image_size(source_->bytes(index, buffer), name);
            return fmt::format("{}, {}x{} pixels", name, size.width, size.height);
        } catch (const Error& error) {
            return error.what();
        }
    }

    std::vector<SkippedSample> skipped() const override {
        const std::lock_guard lock(mutex_);
        std::vector<SkippedSample> result;
        for (const auto& [index, why] : bad_) result.push_back({source_->name(index), why});
        return result;
    }

  private:
    // Who reads for sample `index`: itself, then those with the same last digit, then all others on the same side of one_of_ten; -1: nobody.
    int64_t stand_in(int64_t index, int64_t attempt) const {
        const int64_t digit = index % 10, same = (size() - digit + 9) / 10;
        if (attempt < same) return (index / 10 + attempt) % same * 10 + digit;
        const int64_t other = attempt - same;
        return other < size() && other % 10 != digit && (other % 10 == 9) == (digit == 9) ? other : -1;
    }

    bool known_as_bad(int64_t index) const {
        const std::lock_guard lock(mutex_);
        return bad_.count(index) > 0;
    }

    void skip(int64_t index, const std::string& why) const {
        const std::lock_guard lock(mutex_);
        if (bad_.emplace(index, why).second) warn("skipping a picture: {}", why);
    }

    Cut cut_of(ImageSize size, SampleRandom& random) const {
        const Augment& augment = transform_.augment;
        Cut cut;
        cut.flip = augment.flip && random.coin();
        cut.rect = augment.crop == CropKind::RandomResized
                       ? random_part(size, augment.least_area, random)
                       : window(size, to_, transform_.resize, augment.crop == CropKind::Random ? &random : nullptr);
        return cut;
    }

    int64_t read_one(int64_t index, SampleId id, const SampleOut& out, ImageScratch& own, std::byte* input, std::byte* target) const {
        const int32_t label = source_->label(index);
        std::memcpy(target, &label, sizeof label);
        if (!out.input) return 0;
        const std::string name = source_->name(index);
        const std::string_view bytes = source_->bytes(index, own.buffer);
        SampleRandom random(transform_.seed, id);
        const Cut cut = decode(bytes, name, random, own);
        const int64_t count = to_.width * to_.height;
        own.planes.resize(static_cast<size_t>(3 * count));
        own.resampler.run(own.pixels, cut.rect, to_, own.planes.data());
        if (transform_.augment.jitter > 0) jitter(own.planes.data(), count, transform_.augment.jitter, random);
        if (out.type == DType::f64)
            write(own.planes.data(), cut.flip, reinterpret_cast<double*>(input));
        else
            write(own.planes.data(), cut.flip, reinterpret_cast<float*>(input));
        return static_cast<int64_t>(bytes.size());
    }

    // Decodes the picture; what to cut out of what was decoded.
    Cut decode(std::string_view bytes, const std::string& name, SampleRandom& random, ImageScratch& own) const {
        const ImageSize size = is_jpeg(bytes) ? own.jpeg.size(bytes, name) : image_size(bytes, name);
        Cut cut = cut_of(size, random);
        if (!is_jpeg(bytes)) {
            decode_png(bytes, own.pixels, name);
            return cut;
        }
        const int eighths = scale_for(cut.rect, to_);
        const ImageSize smaller = JpegDecoder::scaled(size, eighths);
        const double sx = static_cast<double>(smaller.width) / static_cast<double>(size.width);
        const double sy = static_cast<double>(smaller.height) / static_cast<double>(size.height);
        cut.rect = {cut.rect.x * sx, cut.rect.y * sy, cut.rect.width * sx, cut.rect.height * sy};
        const PixelBox found = own.jpeg.decode(bytes, eighths, needed(cut.rect, to_, smaller), own.pixels, name);
        cut.rect.x -= static_cast<double>(found.x);
        cut.rect.y -= static_cast<double>(found.y);
        return cut;
    }

    template <class T>
    void write(const float* planes, bool flip, T* out) const {
        for (int64_t c = 0; c < 3; ++c) {
            const auto factor = static_cast<T>(factor_[static_cast<size_t>(c)]), offset = static_cast<T>(offset_[static_cast<size_t>(c)]);
            for (int64_t y = 0; y < to_.height; ++y, planes += to_.width, out += to_.width)
                if (flip)
                    for (int64_t x = 0; x < to_.width; ++x) out[x] = static_cast<T>(planes[to_.width - 1 - x]) * factor + offset;
                else
                    for (int64_t x = 0; x < to_.width; ++x) out[x] = static_cast<T>(planes[x]) * factor + offset;
        }
    }

    std::unique_ptr<ImageSource> source_;
    DatasetInfo info_;
    Transform transform_;
    bool strict_;
    ImageSize to_;
    std::array<double, 3> factor_{}, offset_{};
    mutable std::mutex mutex_;
    mutable std::map<int64_t, std::string> bad_;  // what could not be read, so far
};

}  // namespace

std::unique_ptr<Dataset> make_image_dataset(std::unique_ptr<ImageSource> source, const ImageOptions& options) {
    return std::make_unique<ImageDataset>(std::move(source), options);
}

ImageSize image_size(std::string_view bytes, const std::string& name) {
    if (is_jpeg(bytes)) return JpegDecoder().size(bytes, name);
    require(is_png(bytes), "{}: neither JPEG nor PNG: {}", name,
            bytes.empty() ? "it is empty" : fmt::format("it begins with byte {:02x}", static_cast<uint8_t>(bytes[0])));
    return png_size(bytes, name);
}

}  // namespace convoy
