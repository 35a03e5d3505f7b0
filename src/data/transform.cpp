#include "data/transform.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/suggest.h"

namespace convoy {

namespace {

std::vector<std::string> split_at(const std::string& text, char separator) {
    std::vector<std::string> parts{""};
    for (const char c : text)
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

double number(const std::string& text, const std::string& where, double low, double high) {
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(failed == std::errc() && end == text.data() + text.size() && value >= low && value <= high,
            "{}: expected a number from {} to {}, found \"{}\"", where, low, high, text);
    return value;
}

const std::map<std::string, Normalize>& known_normalizations() {
    static const std::map<std::string, Normalize> known{
        {"none", {}},
        {"imagenet", {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}},
        {"cifar", {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}}},
        {"mnist", {{0.1307}, {0.3081}}},
    };
    return known;
}

}  // namespace

Augment parse_augment(const std::string& text) {
    const std::vector<std::string> known{"none", "random-crop", "random-resized-crop", "flip", "rot90", "jitter"};
    Augment augment;
    for (const std::string& word : split_at(text, ',')) {
        const auto parts = split_at(word, ':');
        const std::string &name = parts[0], where = fmt::format("augment \"{}\"", word);
        const auto value = [&](double otherwise, double low, double high) {
            return parts.size() > 1 ? number(parts[1], where, low, high) : otherwise;
        };
        require(parts.size() <= 2, "{}: expected NAME or NAME:NUMBER", where);
        if (name == "random-crop") {
            augment.crop = CropKind::Random;
            augment.pad = static_cast<int64_t>(value(0, 0, 1e6));
        } else if (name == "random-resized-crop") {
            augment.crop = CropKind::RandomResized;
            augment.least_area = value(0.08, 1e-6, 1);
        } else if (name == "jitter") {
            augment.jitter = value(0.4, 0, 1);
        } else {
            require(parts.size() == 1, "{}: it takes no number", where);
            if (name == "flip")
                augment.flip = true;
            else if (name == "rot90")
                augment.rotate = true;
            else
                require(name == "none", "unknown augmentation \"{}\"; expected a list of {}{}", name, fmt::join(known, ", "),
                        did_you_mean(name, known));
        }
    }
    return augment;
}

std::string to_string(const Augment& augment) {
    std::vector<std::string> words;
    if (augment.crop == CropKind::Random) words.push_back(augment.pad > 0 ? fmt::format("random-crop:{}", augment.pad) : "random-crop");
    if (augment.crop == CropKind::RandomResized)
        words.push_back(augment.least_area == Augment{}.least_area ? "random-resized-crop"
                                                                   : fmt::format("random-resized-crop:{}", augment.least_area));
    if (augment.flip) words.emplace_back("flip");
    if (augment.rotate) words.emplace_back("rot90");
    if (augment.jitter > 0) words.push_back(fmt::format("jitter:{}", augment.jitter));
    return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ","));
}

Normalize parse_normalize(const std::string& text) {
    const auto at = known_normalizations().find(text);
    if (at != known_normalizations().end()) return at->second;
    const auto halves = split_at(text, '/');
    require(halves.size() == 2,
            "normalize \"{}\": expected none, imagenet, cifar, mnist, or MEANS/DEVIATIONS such as 0.5,0.5,0.5/0.25,0.25,0.25", text);
    Normalize result;
    const std::string where = fmt::format("normalize \"{}\"", text);
    for (const auto& word : split_at(halves[0], ',')) result.mean.push_back(number(word, where, -1e30, 1e30));
    for (const auto& word : split_at(halves[1], ',')) result.deviation.push_back(number(word, where, 1e-30, 1e30));
    return result;
}

std::string to_string(const Normalize& normalize) {
    for (const auto& [name, values] : known_normalizations())
        if (values == normalize) return name;
    return fmt::format("{}/{}", fmt::join(normalize.mean, ","), fmt::join(normalize.deviation, ","));
}

void require_channels(const Normalize& normalize, int64_t channels, const std::string& name) {
    for (const auto* values : {&normalize.mean, &normalize.deviation})
        require(values->size() <= 1 || static_cast<int64_t>(values->size()) == channels,
                "dataset \"{}\" has {} channel{}, but normalization is by {} numbers", name, channels, channels == 1 ? "" : "s",
                values->size());
}

}  // namespace convoy
