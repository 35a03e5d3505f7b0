// Dropout: the mask is a function of the seed, the step, the op's stream and the element's index in the whole tensor, as in base/random.h. Seed and
// step are read from the device's memory, so that a recorded step can be run again with others.
#include "kernels/cuda/family.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

namespace {

__device__ uint4 philox_block(uint4 c, uint2 key) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = uint64_t{0xD2511F53u} * c.x, p1 = uint64_t{0xCD9E8D57u} * c.z;
        c = make_uint4(static_cast<uint32_t>(p1 >> 32) ^ c.y ^ key.x, static_cast<uint32_t>(p1),
                       static_cast<uint32_t>(p0 >> 32) ^ c.w ^ key.y, static_cast<uint32_t>(p0));
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return c;
}

// Elements in the order of memory, and where each lies in the whole tensor.
struct Places {
    int rank = 0;
    int64_t size[Dims::kMost], whole[Dims::kMost];  // slowest first: the part's length, and the stride in the whole tensor
    int64_t first = 0;                              // index in the whole of the part's first element
    int64_t count = 0;
};

Places places_of(const TensorDesc& desc, const Layout& layout, int64_t first_sample) {
    Dims origin = desc.origin;
    if (!origin.empty()) origin[0] += first_sample;
    const Dims whole = row_major_strides(desc.global), strides = strides_of(desc.shape, layout);
    const CopyShape order = copy_shape(desc.shape, whole, strides);  // from the whole's index to the part's memory
    Places places;
    places.rank = order.rank;
    for (int d = 0; d < order.rank; ++d) {
        places.size[d] = order.size[d];
        places.whole[d] = order.src[d];
    }
    for (int d = 0; d < origin.size(); ++d) places.first += origin[d] * whole[d];
    places.count = numel(desc.shape);
    return places;
}

template <class T>
__global__ void dropout(Places places, const T* x, T* y, const StepContext* context, uint32_t stream, double p) {
    const uint64_t seed = context->seed;
    const uint32_t step_number = context->step;
    const Wide<T> scale = static_cast<Wide<T>>(1 / (1 - p));
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < places.count; i += step) {
        int64_t rest = i, index = places.first;
        for (int d = places.rank - 1; d > 0; --d) {
            index += rest % places.size[d] * places.whole[d];
            rest /= places.size[d];
        }
        index += rest * places.whole[0];
        const auto block = static_cast<uint64_t>(index) / 4;
        const uint4 words = philox_block(make_uint4(static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), step_number, stream),
                                         make_uint2(static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)));
        const int which = static_cast<int>(index % 4);
        const uint32_t word = which == 0 ? words.x : which == 1 ? words.y : which == 2 ? words.z : words.w;
        // In double for every T, so that all types drop the same elements.
        y[i] = (word + 0.5) * 0x1p-32 >= p ? narrow<T>(widen(x[i]) * scale) : narrow<T>(Wide<T>{0});
    }
}

bool accepts(const Problem& p) { return steps_are<DropoutOp>(p); }
std::vector<Candidate> candidates(const Problem& p) {
    return in_each_layout(p, {input_of(p, 0, 0), output_of(p, 0)}, {{output_of(p, 0), input_of(p, 0, 0)}});
}
std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const auto& op = op_of<DropoutOp>(request.problem);
    const Operand &x = request.inputs[0], &y = request.outputs[0];
    const Places places = places_of(x.desc, x.layout, op.first_sample);
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        kernel = make_kernel(
            [&device, places, op, in = static_cast<const T*>(x.data), out = static_cast<T*>(y.data)](const StepContext& context) {
                if (places.count == 0) return;
                if (!device.recording()) device.set_context(context);
                launch(device, dropout<T>, grid_for(places.count), kThreads, places, in, out, device.context(), op.stream, op.p);
            });
    });
    return kernel;
}

}  // namespace

Family dropout_family() { return {"dropout", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
