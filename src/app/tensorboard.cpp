#include "app/tensorboard.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "data/png/png.h"

namespace convoy {

namespace {

constexpr int64_t kExamples = 8;

// "loss", "accuracy" of steps under train/, of epochs under epoch/.
std::string tag_of(const std::string& kind, const std::string& name) { return (kind == "step" ? "train/" : "epoch/") + name; }

}  // namespace

Image picture_of(const Tensor& input, int64_t row) {
    const Shape& shape = input.shape();  // N, C, [D,] H, W
    const int64_t width = shape[shape.size() - 1], height = shape.size() > 3 ? shape[shape.size() - 2] : 1, plane = width * height;
    const int64_t channel = numel(shape.slice(2)), first = row * shape[1] * channel;
    const int64_t middle = channel / plane / 2 * plane;
    const int64_t colours = shape[1] == 3 ? 3 : 1;
    double low = INFINITY, high = -INFINITY;
    const auto at = [&](int64_t c, int64_t i) { return element(input, first + c * channel + middle + i); };
    for (int64_t c = 0; c < colours; ++c)
        for (int64_t i = 0; i < plane; ++i) {
            low = std::min(low, at(c, i));
            high = std::max(high, at(c, i));
        }
    const double scale = high > low ? 255 / (high - low) : 0;
    Image image{.width = static_cast<int>(width), .height = static_cast<int>(height), .rgb = {}};
    for (int64_t i = 0; i < plane; ++i)
        for (int64_t c = 0; c < 3; ++c) image.rgb.push_back(static_cast<uint8_t>(std::lround((at(c % colours, i) - low) * scale)));
    return image;
}

void TensorBoard::on_start(const TrainStart& start) {
    if (start.first_step > 0) file_.restart(start.first_step);
    file_.flush();
}

void TensorBoard::on_metrics(const Json& line) {
    const int64_t step = line.at("step");
    for (const auto& [name, value] : line.items())
        if (value.is_number_float() && name != "step" && name != "epoch") file_.scalar(step, tag_of(line.at("kind"), name), value);
    file_.flush();
}

void TensorBoard::on_examples(const Batch& batch, const DatasetInfo& info) {
    for (int64_t row = 0; row < std::min(batch.count, kExamples); ++row) {
        const Image image = picture_of(batch.input, row);
        const std::string label = info.target == TargetKind::Class ? fmt::format(" of class {}", element(batch.target, row)) : "";
        file_.image(0, fmt::format("examples/{}{}", row, label), image.width, image.height,
                    encode_png({.size = {image.width, image.height}, .rgb = image.rgb}));
    }
    file_.flush();
}

void TensorBoard::on_parameter(int64_t step, const std::string& name, const Tensor& value, const Tensor* gradient) {
    file_.histogram(step, "parameters/" + name, histogram_of(value.to(DType::f32).as<float>()));
    if (gradient) file_.histogram(step, "gradients/" + name, histogram_of(gradient->to(DType::f32).as<float>()));
}

}  // namespace convoy
