// Dropout's factors: Philox 4x32 with 10 rounds, bit for bit that of base/random.h, sixteen blocks of four words at a time.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kBlocks = 16;

// The 4*kBlocks words from block `number` on.
void words_from(const DropoutArgs& a, uint64_t number, uint32_t* words) {
    alignas(64) uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
    for (int l = 0; l < kBlocks; ++l) {
        const uint64_t counter = number + static_cast<uint64_t>(l);
        c0[l] = static_cast<uint32_t>(counter);
        c1[l] = static_cast<uint32_t>(counter >> 32);
        c2[l] = a.step;
        c3[l] = a.stream;
    }
    uint32_t key0 = static_cast<uint32_t>(a.seed), key1 = static_cast<uint32_t>(a.seed >> 32);
    for (int round = 0; round < 10; ++round) {
#pragma omp simd
        for (int l = 0; l < kBlocks; ++l) {
            const uint64_t p0 = uint64_t{kMultiplier0} * c0[l], p1 = uint64_t{kMultiplier1} * c2[l];
            c0[l] = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ key0;
            c1[l] = static_cast<uint32_t>(p1);
            c2[l] = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ key1;
            c3[l] = static_cast<uint32_t>(p0);
        }
        key0 += kWeyl0;
        key1 += kWeyl1;
    }
    for (int l = 0; l < kBlocks; ++l) {
        words[4 * l] = c0[l];
        words[4 * l + 1] = c1[l];
        words[4 * l + 2] = c2[l];
        words[4 * l + 3] = c3[l];
    }
}

void dropout_factors(const DropoutArgs& a, uint64_t first, int64_t count, float* factors) {
    alignas(64) uint32_t words[4 * kBlocks];
    const uint32_t threshold = a.threshold;
    const float scale = a.scale;
    for (int64_t done = 0; done < count;) {
        const uint64_t index = first + static_cast<uint64_t>(done);
        words_from(a, index / 4, words);
        const int64_t skip = static_cast<int64_t>(index % 4), some = least(4 * kBlocks - skip, count - done);
#pragma omp simd
        for (int64_t i = 0; i < some; ++i) factors[done + i] = words[skip + i] >= threshold ? scale : 0;
        done += some;
    }
}

void dropout_apply(const float* x, const float* factors, int64_t count, float* y) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
        const float scaled = x[i] * factors[i];
        y[i] = factors[i] > 0 ? scaled : 0;
    }
}

}  // namespace

void enter_dropout(VectorKernels& table) {
    table.dropout_factors = dropout_factors;
    table.dropout_apply = dropout_apply;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
