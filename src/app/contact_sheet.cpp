#include "app/contact_sheet.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace convoy {

namespace {

constexpr int kGap = 8, kCaption = 22;
constexpr Color kInk{40, 44, 52};
constexpr std::array<Color, 8> kLabels{
    {{20, 20, 26}, {230, 90, 60}, {70, 150, 230}, {90, 190, 90}, {240, 200, 60}, {170, 100, 210}, {80, 200, 200}, {240, 140, 190}}};

// A flat piece of a sample: [height, width], of up to three channels.
struct Picture {
    int64_t width = 0, height = 0;
    std::vector<Color> pixels;
};

uint8_t byte_of(double value) { return static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0))); }

// What lies between black and white: 0..1 where all values are, else from the smallest to the largest of the sample.
struct Range {
    double low = 0, high = 1;
    explicit Range(std::span<const float> values) {
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        if (*least >= 0 && *most <= 1) return;
        low = *least;
        high = std::max<double>(*most, low + 1e-12);
    }
    uint8_t level(float value) const { return byte_of((value - low) / (high - low)); }
};

// The depths at which a volume is cut, or none for what is flat.
std::vector<int64_t> cuts(const Shape& spatial) {
    if (spatial.size() < 3) return {0};
    const int64_t depth = product(spatial, 0, spatial.size() - 2);
    return {depth / 4, depth / 2, 3 * depth / 4};
}

std::vector<Picture> pictures_of(const DatasetInfo& info, const Tensor& input, const Tensor& target) {
    const Shape spatial = info.input.slice(1);
    const int rank = spatial.size();
    const int64_t width = rank > 0 ? spatial[rank - 1] : 1, height = rank > 1 ? spatial[rank - 2] : 1;
    const int64_t channel = numel(spatial), plane = width * height;
    const auto values = input.as<float>();
    const Range range(values);
    const bool color = info.input[0] == 3 && rank == 2;
    std::vector<Picture> result;
    for (const int64_t cut : cuts(spatial)) {
        Picture picture{width, height, {}};
        for (int64_t i = 0; i < plane; ++i) {
            const auto level = [&](int64_t c) { return range.level(values[static_cast<size_t>(c * channel + cut * plane + i)]); };
            picture.pixels.push_back(color ? Color{level(0), level(1), level(2)} : Color{level(0), level(0), level(0)});
        }
        result.push_back(std::move(picture));
    }
    if (info.target != TargetKind::Voxel) return result;
    for (const int64_t cut : cuts(spatial)) {
        Picture picture{width, height, {}};
        for (int64_t i = 0; i < plane; ++i)
            picture.pixels.push_back(
                kLabels[static_cast<size_t>(target.as<int32_t>()[static_cast<size_t>(cut * plane + i)]) % kLabels.size()]);
        result.push_back(std::move(picture));
    }
    return result;
}

std::string caption(const DatasetInfo& info, const Tensor& target, int64_t index) {
    switch (info.target) {
        case TargetKind::Class: {
            const auto label = static_cast<size_t>(target.as<int32_t>()[0]);
            return info.class_names.empty() ? fmt::format("{}", label) : info.class_names[label];
        }
        case TargetKind::Voxel: return fmt::format("sample {}", index);
        case TargetKind::Regression: {
            std::string text;
            for (const float value : target.as<float>().first(static_cast<size_t>(std::min<int64_t>(4, target.numel()))))
                text += fmt::format("{}{:.2f}", text.empty() ? "" : " ", value);
            return text;
        }
    }
    return "";
}

void draw(Canvas& canvas, int left, int top, const Picture& picture, int width, int height) {
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            canvas.blend(left + x, top + y,
                         picture.pixels[static_cast<size_t>(y * picture.height / height * picture.width + x * picture.width / width)], 1);
}

std::string cut_to(const std::string& text, int width) {
    const auto most = static_cast<size_t>(std::max(1, width / text_width("x", 1)));
    return text.size() <= most ? text : text.substr(0, most - 1) + "~";
}

}  // namespace

std::vector<int64_t> spread(int64_t size, int64_t count) {
    std::vector<int64_t> result;
    const int64_t taken = std::min(size, count);
    for (int64_t i = 0; i < taken; ++i) result.push_back(i * size / taken);
    return result;
}

Image contact_sheet(const Dataset& dataset, const SheetOptions& options) {
    const DatasetInfo& info = dataset.info();
    const Shape spatial = info.input.slice(1);
    const int64_t height = spatial.size() > 1 ? spatial[spatial.size() - 2] : 1, width = spatial.empty() ? 1 : spatial.back();
    const double scale = static_cast<double>(options.side) / static_cast<double>(std::max(height, width));
    const int shown_width = std::max(1, static_cast<int>(std::lround(static_cast<double>(width) * scale)));
    const int shown_height = std::max(8, static_cast<int>(std::lround(static_cast<double>(height) * scale)));
    const int across = static_cast<int>(cuts(spatial).size()), down = info.target == TargetKind::Voxel ? 2 : 1;
    const int cell_width = across * (shown_width + 2) - 2, cell_height = down * (shown_height + 2) - 2 + kCaption;
    const auto samples = spread(dataset.size(), options.count);
    const int columns = std::clamp(static_cast<int>(samples.size()), 1, std::max(1, options.columns / across));
    const int rows = (static_cast<int>(samples.size()) + columns - 1) / columns;
    Canvas canvas(kGap + columns * (cell_width + kGap), kGap + rows * (cell_height + kGap));
    Tensor input = make_input(info, 1, DType::f32), target = make_target(info, 1, DType::f32);
    for (size_t i = 0; i < samples.size(); ++i) {
        dataset.read(std::span(samples).subspan(i, 1), input, target);
        const int column = static_cast<int>(i) % columns, row = static_cast<int>(i) / columns;
        const int left = kGap + column * (cell_width + kGap), top = kGap + row * (cell_height + kGap);
        const auto pictures = pictures_of(info, input, target);
        for (size_t p = 0; p < pictures.size(); ++p) {
            const int at_x = static_cast<int>(p) % across, at_y = static_cast<int>(p) / across;
            draw(canvas, left + at_x * (shown_width + 2), top + at_y * (shown_height + 2), pictures[p], shown_width, shown_height);
        }
        canvas.text(left, top + cell_height - kCaption + 5, cut_to(caption(info, target, samples[i]), cell_width), kInk, 1);
    }
    return canvas.take();
}

}  // namespace convoy
