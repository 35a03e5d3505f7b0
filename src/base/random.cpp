#include "base/random.h"

#include <cmath>
#include <numeric>

#include "base/random_fill.h"

namespace convoy {

namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

std::array<uint32_t, 4> block(const RandomStream& r, uint64_t number) {
    return philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), r.step, r.stream},
                  {static_cast<uint32_t>(r.seed), static_cast<uint32_t>(r.seed >> 32)});
}

double uniform_of(uint32_t word) { return (word + 0.5) * 0x1p-32; }

// The first or second normal of a block.
double normal_of(const std::array<uint32_t, 4>& words, bool second) {
    const double u = uniform_of(words[second ? 2 : 0]), v = uniform_of(words[second ? 3 : 1]);
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = uint64_t{kMultiplier0} * c[0], p1 = uint64_t{kMultiplier1} * c[2];
        c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key[1],
             static_cast<uint32_t>(p0)};
        key[0] += kWeyl0;
        key[1] += kWeyl1;
    }
    return c;
}

uint32_t stream_of(std::string_view name) {
    uint32_t hash = 2166136261u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
}

uint32_t RandomStream::bits(uint64_t index) const { return block(*this, index / 4)[index % 4]; }

double RandomStream::normal(uint64_t index) const { return normal_of(block(*this, index / 2), index % 2 != 0); }

void fill_uniform(const RandomStream& random, uint64_t first, std::span<double> values) {
    std::array<uint32_t, 4> words{};
    for (uint64_t i = 0; i < values.size(); ++i) {
        if (i == 0 || (first + i) % 4 == 0) words = block(random, (first + i) / 4);
        values[i] = uniform_of(words[(first + i) % 4]);
    }
}

void fill_normal(const RandomStream& random, uint64_t first, std::span<double> values) {
    std::array<uint32_t, 4> words{};
    for (uint64_t i = 0; i < values.size(); ++i) {
        if (i == 0 || (first + i) % 2 == 0) words = block(random, (first + i) / 2);
        values[i] = normal_of(words, (first + i) % 2 != 0);
    }
}

std::vector<int64_t> permutation(const RandomStream& random, int64_t count) {
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), int64_t{0});
    for (int64_t i = count - 1; i > 0; --i) {
        const auto j = static_cast<int64_t>((uint64_t{random.bits(static_cast<uint64_t>(i))} * static_cast<uint64_t>(i + 1)) >> 32);
        std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
    }
    return order;
}

}  // namespace convoy
