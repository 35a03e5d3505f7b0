// For datasets that can only make a whole sample: it is made in memory of the thread's own, and the part that was asked for is copied.
#pragma once

#include "data/dataset.h"
#include "data/runs.h"

namespace convoy {

class WholeSample : public Scratch {
  public:
    explicit WholeSample(const DatasetInfo& info) : info_(info) {}

    // Calls make(input, target), pointers to memory for the whole sample, and copies what `out` wants. Where it wants everything nothing is copied.
    template <class F>
    void read(const SampleOut& out, F&& make) {
        const auto place = [&](std::byte* wanted, const Box& box, const Shape& shape, Tensor& own, DType type) {
            if (wanted && box == Box::whole(shape)) return wanted;
            if (own.shape() != shape || own.dtype() != type || !own.data()) own = Tensor(shape, type);
            return own.data();
        };
        const DType targets = target_type(info_, out.type);
        std::byte* const input = place(out.input, out.input_box, info_.input, input_, out.type);
        std::byte* const target = place(out.target, out.target_box, info_.target_shape, target_, targets);
        make(input, target);
        if (out.input && out.input != input) copy_box(input, info_.input, out.input_box, size_of(out.type), out.input);
        if (out.target && out.target != target) copy_box(target, info_.target_shape, out.target_box, size_of(targets), out.target);
    }

  private:
    const DatasetInfo info_;
    Tensor input_, target_;
};

}  // namespace convoy
