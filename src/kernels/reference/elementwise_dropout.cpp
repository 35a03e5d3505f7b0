#include <array>

#include "base/random.h"
#include "kernels/reference/elementwise.h"

namespace convoy::ref {

namespace {

// The words of a RandomStream, asked for in rising order: a Philox block gives four of them and is computed once.
class Words {
  public:
    explicit Words(const RandomStream& random) : random_(random) {}
    uint32_t at(uint64_t index) {
        if (index / 4 != number_) {
            number_ = index / 4;
            words_ = philox({static_cast<uint32_t>(number_), static_cast<uint32_t>(number_ >> 32), random_.step, random_.stream},
                            {static_cast<uint32_t>(random_.seed), static_cast<uint32_t>(random_.seed >> 32)});
        }
        return words_[index % 4];
    }

  private:
    RandomStream random_;
    uint64_t number_ = ~uint64_t{0};
    std::array<uint32_t, 4> words_{};
};

// A part of a tensor as runs: stretches of elements that are adjacent both in the part and in the whole.
struct Runs {
    Shape shape, global;
    Dims origin;
    int64_t length = 1;
    int dims = 0;  // the leading ones, which number the runs

    template <class T>
    Runs(const View<T>& x, int64_t first_sample) : shape(x.shape), global(x.global), origin(x.origin), dims(x.rank()) {
        if (dims > 0) origin[0] += first_sample;
        // A dim can be taken into the run when all dims after it are whole.
        bool whole = true;
        while (dims > 0 && whole) {
            --dims;
            length *= shape[dims];
            whole = shape[dims] == global[dims];
        }
    }
    // The index in the whole tensor of the first element of a run.
    uint64_t start(int64_t run) const {
        int64_t index = 0, stride = 1;
        for (int d = shape.size() - 1; d >= 0; --d) {
            const int64_t position = d < dims ? run % shape[d] : 0;
            if (d < dims) run /= shape[d];
            index += (origin[d] + position) * stride;
            stride *= global[d];
        }
        return static_cast<uint64_t>(index);
    }
};

}  // namespace

template <class T>
void reference(const DropoutOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const RandomStream random{args.context.seed, args.context.step, op.stream};
    const T scale = static_cast<T>(1 / (1 - op.p));
    const Runs runs(x, op.first_sample);
    parallel_ranges(args.threads, x.count, kElementGrain, [&](int64_t begin, int64_t end) {
        Words words(random);
        for (int64_t i = begin; i < end;) {
            const int64_t offset = i % runs.length, stop = std::min(end, i - offset + runs.length);
            uint64_t index = runs.start(i / runs.length) + static_cast<uint64_t>(offset);
            // The comparison is that of RandomStream::uniform, in double for every T, so that all types drop the same elements.
            for (; i < stop; ++i, ++index) y[i] = (words.at(index) + 0.5) * 0x1p-32 >= op.p ? x[i] * scale : T{0};
        }
    });
}

template void reference<double>(const DropoutOp&, const KernelArgs&);
template void reference<float>(const DropoutOp&, const KernelArgs&);

}  // namespace convoy::ref
