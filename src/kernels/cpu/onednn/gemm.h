// Matrix products of float32 by oneDNN, row-major. Nothing of the library shows.
#pragma once

#include <cstdint>

namespace convoy::cpu {

// Rows are `step` floats apart. A transposed one is stored as its transpose.
struct Factor {
    const float* data = nullptr;
    int64_t step = 0;
    bool transposed = false;
};

// c[m, n] = a[m, k] b[k, n], or with `add` that is added to c. Uses the calling thread's OpenMP team; inside one, the thread itself.
struct Gemm {
    int64_t m = 0, n = 0, k = 0;
    Factor a, b;
    float* c = nullptr;
    int64_t c_step = 0;
    bool add = false;

    void run() const;
};

// Sets the number of OpenMP threads that libraries called from this thread use.
void use_threads(int threads);

}  // namespace convoy::cpu
