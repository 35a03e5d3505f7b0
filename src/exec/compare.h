// How far tensors lie apart, looked at where they lie: a check of a large model has no memory for copies.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "tensor/tensor.h"

namespace convoy {

// ||t||, and ||a - b|| of tensors of one shape, in double precision; NaN anywhere gives NaN.
double norm_of(const Tensor& tensor);
double distance_between(const Tensor& a, const Tensor& b);

// The elements of a tensor as doubles: in place where they are plain doubles that the host can read, as a copy otherwise.
class Doubles {
  public:
    // What the operand refers to must outlive it, unchanged.
    Doubles(const Operand& operand, Backend& backend);
    explicit Doubles(std::shared_ptr<const Tensor> tensor);
    explicit Doubles(Tensor tensor) : Doubles(std::make_shared<const Tensor>(std::move(tensor))) {}

    const double* data() const { return data_; }
    const Shape& shape() const { return shape_; }
    double norm() const;

  private:
    void keep(std::shared_ptr<const Tensor> tensor);

    Shape shape_;
    std::shared_ptr<const Tensor> kept_;
    const double* data_ = nullptr;
};

// How far one part of a tensor is from what is heard of the whole, piece by piece.
class Comparison {
  public:
    Comparison(Doubles found, const Box& box) : found_(std::move(found)), box_(box) {}

    // The elements of a box of the whole.
    void hear(const double* piece, const Box& where);
    // Relative to the norm of the whole, or to the floor where that is more.
    double error(double norm, double floor) const;

  private:
    Doubles found_;
    Box box_;
    double squared_ = 0;
};

}  // namespace convoy
