#include "kernels/cuda/product_conv.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

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
// Of a filter all elements side by side.
Matrix weights(const Operand& o, bool transposed = false) {
    const int64_t each = numel(o.desc.shape) / o.desc.shape[0];
    return {o.data, o.desc.dtype, o.desc.shape[0], each, each, transposed};
}

std::byte* at(void* data, int64_t offset) { return static_cast<std::byte*>(data) + offset; }

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
        if (conv_.x.desc.shape == gathered_shape(conv_.x.desc.shape[1]))
            return conv_.direction == Direction::GradWeight ? grad_weight(conv_.x) : multiply(on_samples(conv_.x, 0));
        if (conv_.direction == Direction::GradInput) return scattered();
        const auto x = gathered(conv_.x.desc.shape[1]);
        if (!x) return nullptr;
        const auto run = conv_.direction == Direction::GradWeight ? grad_weight(*x) : multiply(on_samples(*x, 0));
        if (!run) return nullptr;
        return [&device = device_, run, copy = windows(*x, 0)] {
            start_copy(device, copy.shape, copy.in_place, copy.gathered);
            run();
        };
    }

  private:
    // The elements of x under the windows as a tensor like y: what are elements of a window in x are channels there.
    Shape gathered_shape(int64_t channels) const {
        Shape shape = conv_.y.desc.shape;
        shape[1] = channels * numel(conv_.window.kernel);
        return shape;
    }
    std::optional<Operand> gathered(int64_t channels) {
        Operand x = conv_.x;
        x.desc = TensorDesc::whole(gathered_shape(channels), x.desc.dtype);
        x.data = scratch_.take(numel(x.desc.shape) * size_of(x.desc.dtype));
        return x.data ? std::optional(x) : std::nullopt;
    }
    // Between x, from a channel on, and what was gathered from it.
    struct Windows {
        Shape shape;
        CopyEnd in_place, gathered;
    };
    Windows windows(const Operand& gathered, int64_t first_channel) const {
        const Window& window = conv_.window;
        const Dims strides = strides_of(conv_.x.desc.shape, conv_.x.layout), dense = strides_of(gathered.desc.shape, gathered.layout);
        const int64_t elements = numel(window.kernel);
        Windows w{
            {gathered.desc.shape[0], gathered.desc.shape[1] / elements},
            {at(conv_.x.data, first_channel * strides[1] * size_of(conv_.x.desc.dtype)), conv_.x.desc.dtype, {strides[0], strides[1]}},
            {gathered.data, gathered.desc.dtype, {dense[0], dense[1] * elements}}};
        int64_t inner = elements;
        for (int d = 0; d < window.rank(); ++d) {
            inner /= window.kernel[d];
            w.shape.push_back(window.kernel[d]);
            w.in_place.strides.push_back(strides[2 + d]);
            w.gathered.strides.push_back(dense[1] * inner);
        }
        for (int d = 0; d < window.rank(); ++d) {
            w.shape.push_back(gathered.desc.shape[2 + d]);
            w.in_place.strides.push_back(strides[2 + d] * window.stride[d]);
            w.gathered.strides.push_back(dense[2 + d]);
        }
        return w;
    }

    // What starts each of some products that run one after the other, and so have one workspace.
    std::vector<std::function<void()>> multiply(const std::vector<Product>& products) {
        std::vector<std::function<void()>> starts;
        int64_t most = 0;
        for (const Product& product : products) {
            const auto matmul =
                std::make_shared<Matmul>(device_, product, compute_, scratch_.rest(), std::min(kLibraryBytes, scratch_.left()));
            most = std::max(most, matmul->workspace_bytes());
            starts.push_back([matmul] { matmul->start(); });
        }
        scratch_.take(most);
        return starts;
    }
    std::function<void()> multiply(const Product& product) { return multiply(std::vector{product})[0]; }

    // The product for x, which has the columns of the weights from this one on.
    Product on_samples(const Operand& x, int64_t first_column) const {
        const bool forward = conv_.direction == Direction::Forward;
        Matrix w = weights(conv_.w, !forward);
        w.data = at(w.data, first_column * size_of(w.dtype));
        w.columns = x.desc.shape[1];
        return forward ? Product{w, samples(x), samples(conv_.y), x.desc.shape[0]}
                       : Product{w, samples(conv_.y), samples(x), x.desc.shape[0]};
    }

    // The gradient of x where windows have gaps or several elements, some channels at a time.
    std::function<void()> scattered() {
        const int64_t channels = conv_.x.desc.shape[1], elements = numel(conv_.window.kernel);
        int64_t each = channels;
        while (each % 2 == 0 && numel(gathered_shape(each)) * size_of(conv_.x.desc.dtype) > conv_.part_bytes) each /= 2;
        const auto part = gathered(each);
        if (!part) return nullptr;
        std::vector<Product> products;
        std::vector<Windows> copies;
        for (int64_t first = 0; first < channels; first += each) {
            products.push_back(on_samples(*part, first * elements));
            copies.push_back(windows(*part, first));
        }
        return [&device = device_, starts = multiply(products), copies, x = conv_.x, gaps = has_gaps()] {
            if (gaps) start_fill(device, x.data, x.desc.dtype, numel(x.desc.shape), 0);
            for (size_t i = 0; i < starts.size(); ++i) {
                starts[i]();
                start_copy(device, copies[i].shape, copies[i].gathered, copies[i].in_place);
            }
        };
    }
    // Whether some elements of x are under no window.
    bool has_gaps() const {
        for (int d = 0; d < conv_.window.rank(); ++d)
            if (conv_.window.kernel[d] != conv_.window.stride[d] ||
                conv_.x.desc.shape[2 + d] != conv_.y.desc.shape[2 + d] * conv_.window.stride[d])
                return true;
        return false;
    }

    // The sum of the products of parts of the batch.
    std::function<void()> grad_weight(const Operand& x) {
        const int64_t filters = conv_.w.desc.shape[0], channels = x.desc.shape[1], n = x.desc.shape[0], positions = positions_of(x);
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
    if (groups != 1) return false;
    for (int d = 0; d < w.rank(); ++d)
        if (w.pad_lo[d] != 0 || w.pad_hi[d] != 0 || w.kernel[d] > w.stride[d] || (w.kernel[d] > 1 && w.dilation[d] != 1)) return false;
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
