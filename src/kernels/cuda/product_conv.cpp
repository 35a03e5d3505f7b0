#include "kernels/cuda/product_conv.h"

#include <algorithm>
#include <memory>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/matmul.h"

namespace convoy::cuda {

namespace {

constexpr int64_t kLibraryBytes = int64_t{32} << 20;  // at most

int64_t positions_of(const Operand& o) { return numel(o.desc.shape) / (o.desc.shape[0] * o.desc.shape[1]); }

// Every sample is a matrix of channels by positions.
Matrix samples(const Operand& o, bool transposed = false) {
    const int64_t channels = o.desc.shape[1], positions = positions_of(o);
    return {o.data, o.desc.dtype, channels, positions, positions, transposed, channels * positions};
}
Matrix weights(const Operand& o, bool transposed = false) {
    return {o.data, o.desc.dtype, o.desc.shape[0], o.desc.shape[1], o.desc.shape[1], transposed};
}

// The elements of the input under the windows, as a tensor of the outputs' size.
CopyEnd under_windows(const Operand& x, const Window& window) {
    Dims strides = strides_of(x.desc.shape, x.layout);
    for (int d = 0; d < window.rank(); ++d) strides[2 + d] *= window.stride[d];
    return {x.data, x.desc.dtype, strides};
}

// [N, C, positions] as [C, N, positions]: all positions of a channel side by side.
void start_joining(const Device& device, const Operand& from, void* to) {
    const int64_t n = from.desc.shape[0], c = from.desc.shape[1], positions = positions_of(from);
    start_copy(device, {n, c, positions}, {from.data, from.desc.dtype, {c * positions, positions, 1}},
               {to, from.desc.dtype, {positions, n * positions, 1}});
}

class Maker {
  public:
    Maker(Device& device, const ProductConv& conv, DType compute, Scratch& scratch)
        : device_(device), conv_(conv), compute_(compute), scratch_(scratch) {}

    std::function<void()> make() {
        // With strides, on a copy of the elements that are used.
        Operand x = conv_.x;
        const bool thinned = x.desc.shape != small_shape();
        if (thinned) {
            x.desc = TensorDesc::whole(small_shape(), x.desc.dtype);
            x.data = scratch_.take(numel(x.desc.shape) * size_of(x.desc.dtype));
            if (!x.data) return nullptr;
        }
        auto run = conv_.direction == Direction::GradWeight ? grad_weight(x) : on_samples(x);
        if (!run || !thinned) return run;
        const CopyEnd used = under_windows(conv_.x, conv_.window), dense{x.data, x.desc.dtype, strides_of(x.desc.shape, x.layout)};
        if (conv_.direction == Direction::GradInput)
            return [&device = device_, run, own = conv_.x, shape = x.desc.shape, used, dense] {
                run();
                start_fill(device, own.data, own.desc.dtype, numel(own.desc.shape), 0);
                start_copy(device, shape, dense, used);
            };
        return [&device = device_, run, shape = x.desc.shape, used, dense] {
            start_copy(device, shape, used, dense);
            run();
        };
    }

  private:
    Shape small_shape() const {
        Shape shape = conv_.y.desc.shape;
        shape[1] = conv_.x.desc.shape[1];
        return shape;
    }

    std::function<void()> multiply(const Product& product) {
        const auto matmul = std::make_shared<Matmul>(device_, product, compute_, scratch_.rest(), std::min(kLibraryBytes, scratch_.left()));
        scratch_.take(matmul->workspace_bytes());
        return [matmul] { matmul->start(); };
    }

    std::function<void()> on_samples(const Operand& x) {
        const int64_t batch = x.desc.shape[0];
        if (conv_.direction == Direction::Forward) return multiply({weights(conv_.w), samples(x), samples(conv_.y), batch});
        return multiply({weights(conv_.w, true), samples(conv_.y), samples(x), batch});
    }

    // The sum of the products of parts of the batch.
    std::function<void()> grad_weight(const Operand& x) {
        const int64_t filters = conv_.w.desc.shape[0], channels = conv_.w.desc.shape[1], n = x.desc.shape[0], positions = positions_of(x);
        int64_t parts = n;
        Product product{samples(conv_.y), samples(x, true), weights(conv_.w), n};
        if (conv_.join) {
            parts = parts_of(filters, channels, n);
            const int64_t all = n * positions, each = all / parts;
            const auto joined = [&](const Operand& o, int64_t rows, bool transposed) -> Matrix {
                return {scratch_.take(rows * all * size_of(o.desc.dtype)), o.desc.dtype, rows, each, all, transposed, each};
            };
            product = {joined(conv_.y, filters, false), joined(x, channels, true), weights(conv_.w), parts};
            if (!product.a.data || !product.b.data) return nullptr;
        }
        if (parts > 1) product.c.data = scratch_.take(parts * filters * channels * size_of(conv_.w.desc.dtype));
        if (!product.c.data) return nullptr;
        product.c.next = filters * channels;
        return [&device = device_, run = multiply(product), join = conv_.join, product, x, y = conv_.y, w = conv_.w] {
            if (join) {
                start_joining(device, y, product.a.data);
                start_joining(device, x, product.b.data);
            }
            run();
            if (product.batch > 1) start_sum_of_parts(device, product.c.data, static_cast<int>(product.batch), w);
        };
    }

    // So many that there is work for the whole device, and the batch divides into them.
    static int64_t parts_of(int64_t filters, int64_t channels, int64_t batch) {
        constexpr int64_t kTile = 128, kTiles = 264;
        const int64_t tiles = ((filters + kTile - 1) / kTile) * ((channels + kTile - 1) / kTile);
        int64_t parts = 1;
        while (parts * tiles < kTiles && batch % (2 * parts) == 0) parts *= 2;
        return parts;
    }

    Device& device_;
    const ProductConv& conv_;
    DType compute_;
    Scratch& scratch_;
};

}  // namespace

bool is_product(const ProductConv& conv, int64_t groups) {
    const Window& w = conv.window;
    if (groups != 1 || numel(w.kernel) != 1) return false;
    for (int d = 0; d < w.rank(); ++d)
        if (w.pad_lo[d] != 0 || w.pad_hi[d] != 0) return false;
    for (const Operand* o : {&conv.x, &conv.w, &conv.y})
        if (!o->layout.is_plain() || o->desc.dtype != conv.x.desc.dtype) return false;
    return true;
}

std::function<void()> product_conv(Device& device, const ProductConv& conv, DType compute, Scratch scratch, int64_t& left) {
    auto run = Maker(device, conv, compute, scratch).make();
    left = scratch.left();
    return run;
}

}  // namespace convoy::cuda
