// What is done to samples before a network sees them, as plain values; and the random numbers of a sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/dataset.h"

namespace convoy {

enum class CropKind : uint8_t {
    Centre,         // the middle
    Random,         // anywhere
    RandomResized,  // of pictures: a random part of the area, of a random shape, made as large as is wanted
};

// What is random, in training. Written as a list: "random-resized-crop,flip", "random-crop:4,flip", "flip,rot90", "jitter:0.4", "none".
struct Augment {
    CropKind crop = CropKind::Centre;
    int64_t pad = 0;           // of Random: so many zeros around the sample first
    double least_area = 0.08;  // of RandomResized: of the picture
    bool flip = false;         // pictures: left and right; volumes: along every spatial dim, each by itself
    bool rotate = false;       // volumes (and square arrays): by multiples of 90 degrees, all equally likely
    double jitter = 0;         // pictures: brightness, contrast and saturation times a factor in 1 - jitter .. 1 + jitter
    bool operator==(const Augment&) const = default;
};
// Error names the unknown word, with a suggestion.
Augment parse_augment(const std::string& text);
std::string to_string(const Augment& augment);

// (value - mean) / deviation, for each channel, or with one number for all of them. Pictures have values 0..1 before.
struct Normalize {
    std::vector<double> mean, deviation;
    bool operator==(const Normalize&) const = default;
    double mean_of(int64_t channel) const { return at(mean, channel, 0); }
    double deviation_of(int64_t channel) const { return at(deviation, channel, 1); }

  private:
    static double at(const std::vector<double>& values, int64_t channel, double none) {
        return values.empty() ? none : values.size() == 1 ? values[0] : values[static_cast<size_t>(channel)];
    }
};
// "none", "imagenet", "cifar", "mnist", or "0.5,0.4,0.4/0.2,0.2,0.2" (means / deviations; one number stands for all channels).
Normalize parse_normalize(const std::string& text);
std::string to_string(const Normalize& normalize);
// Error, naming the dataset, unless there is one number or one for each channel.
void require_channels(const Normalize& normalize, int64_t channels, const std::string& name);

// All that is done to the samples of one split.
struct Transform {
    Augment augment;  // nothing random: a centre crop
    Normalize normalize;
    Shape size;          // spatial, of what comes out; empty: as the samples are
    int64_t resize = 0;  // pictures: the short side before a centre or random crop; 0: size * 256 / 224
    uint64_t seed = 1;
};

// The random numbers of one sample in one epoch: number k of (seed, epoch, sample).
class SampleRandom {
  public:
    SampleRandom(uint64_t seed, SampleId id)
        : stream_{seed, static_cast<uint32_t>(id.epoch), stream_of("augment")}, first_(static_cast<uint64_t>(id.index) * kMost) {}

    // The next number in (0, 1).
    double uniform() { return stream_.uniform(first_ + next_++); }
    double uniform(double low, double high) { return low + (high - low) * uniform(); }
    bool coin() { return uniform() < 0.5; }
    // One of 0..count-1.
    int64_t below(int64_t count) { return static_cast<int64_t>(uniform() * static_cast<double>(count)); }

  private:
    static constexpr uint64_t kMost = 128;  // numbers of one sample
    RandomStream stream_;
    uint64_t first_, next_ = 0;
};

}  // namespace convoy
