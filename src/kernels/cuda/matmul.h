// Products of row-major matrices, by cuBLASLt.
#pragma once

#include "kernels/cuda/device.h"
#include "tensor/dtype.h"

namespace convoy::cuda {

struct Matrix {
    void* data;
    DType dtype;
    int64_t rows, columns;    // as they lie in memory
    int64_t pitch;            // elements from a row to the next
    bool transposed = false;  // when it is read
    int64_t next = 0;         // elements from a matrix of a batch to the next one
};
// c = a * b, for every matrix of the batch.
struct Product {
    Matrix a, b, c;
    int64_t batch = 1;
};

class Matmul {
  public:
    // Error when the library has no way to do it. The workspace is a multiple of 256.
    Matmul(Device& device, const Product& product, DType compute, void* workspace, int64_t workspace_bytes);
    ~Matmul();
    Matmul(const Matmul&) = delete;
    Matmul& operator=(const Matmul&) = delete;

    void start() const;
    int64_t workspace_bytes() const { return used_bytes_; }  // that it uses

  private:
    void make(DType compute);
    void choose();
    void destroy();

    Device& device_;
    Product p_;
    bool wide_;
    void* workspace_;
    size_t workspace_bytes_;
    int64_t used_bytes_ = 0;
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
    cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace convoy::cuda
