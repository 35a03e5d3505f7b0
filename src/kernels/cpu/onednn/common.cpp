#include "kernels/cpu/onednn/common.h"

#include <algorithm>
#include <numeric>

#include <omp.h>

#include "base/error.h"

namespace convoy::cpu {

using dnnl::memory;

const dnnl::engine& engine() {
    static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
    return instance;
}

memory::dims to_dims(const Dims& dims) { return {dims.begin(), dims.end()}; }

namespace {

memory::data_type library_type(DType type) {
    switch (type) {
        case DType::f32: return memory::data_type::f32;
        case DType::i32: return memory::data_type::s32;
        case DType::u8: return memory::data_type::u8;
        default: CONVOY_CHECK(false, "oneDNN has no type {}", name_of(type));
    }
}

}  // namespace

memory::desc describe(const Shape& shape, const Layout& layout, DType type) {
    CONVOY_CHECK(layout.opaque.empty(), "layout {} has no description", layout.text());
    if (layout.inner.empty()) {
        memory::dims strides(static_cast<size_t>(shape.size()));
        Dims index = Dims::filled(shape.size(), 0);
        for (int d = 0; d < shape.size(); ++d) {  // the stride of a dim of size 1 is never used, but must be plausible
            Shape wide = shape;
            wide[d] = std::max<int64_t>(2, shape[d]);
            index[d] = 1;
            strides[static_cast<size_t>(d)] = element_offset(wide, layout, index);
            index[d] = 0;
        }
        return memory::desc(to_dims(shape), library_type(type), strides);
    }
    dnnl_memory_desc_t raw{};
    const Shape padded = padded_shape(shape, layout);
    raw.ndims = shape.size();
    raw.data_type = memory::convert_to_c(library_type(type));
    raw.format_kind = dnnl_blocked;
    auto& blocking = raw.format_desc.blocking;
    Shape outer = padded;
    blocking.inner_nblks = static_cast<int>(layout.inner.size());
    int64_t stride = 1;
    for (size_t b = 0; b < layout.inner.size(); ++b) {
        blocking.inner_blks[b] = layout.inner[b].size;
        blocking.inner_idxs[b] = layout.inner[b].dim;
        outer[layout.inner[b].dim] /= layout.inner[b].size;
        stride *= layout.inner[b].size;
    }
    for (auto d = layout.order.rbegin(); d != layout.order.rend(); ++d) {
        blocking.strides[*d] = stride;
        stride *= outer[*d];
    }
    for (int d = 0; d < shape.size(); ++d) {
        raw.dims[d] = shape[d];
        raw.padded_dims[d] = padded[d];
    }
    return memory::desc(raw);
}

memory::desc describe_any(const Shape& shape) { return memory::desc(to_dims(shape), memory::data_type::f32, memory::format_tag::any); }

std::optional<Layout> layout_of(const memory::desc& desc, const Shape& shape) {
    const dnnl_memory_desc_t& raw = desc.data;
    if (raw.format_kind != dnnl_blocked || raw.ndims != shape.size() || raw.extra.flags != 0 || raw.offset0 != 0) return std::nullopt;
    const auto& blocking = raw.format_desc.blocking;
    Layout layout;
    for (int b = 0; b < blocking.inner_nblks; ++b)
        layout.inner.push_back({static_cast<int>(blocking.inner_idxs[b]), blocking.inner_blks[b]});
    layout.order.resize(static_cast<size_t>(shape.size()));
    std::iota(layout.order.begin(), layout.order.end(), 0);
    const auto outer = [&](int d) {
        int64_t size = raw.padded_dims[d];
        for (const auto& b : layout.inner)
            if (b.dim == d) size /= b.size;
        return size;
    };
    // A dim of size 1 (a single block among them) ties in stride with the one outside it.
    std::stable_sort(layout.order.begin(), layout.order.end(), [&](int a, int b) {
        const int64_t sa = blocking.strides[a], sb = blocking.strides[b];
        return sa != sb ? sa > sb : outer(a) > outer(b);
    });
    const bool row_major = layout.inner.empty() && std::is_sorted(layout.order.begin(), layout.order.end());
    if (row_major) layout.order.clear();
    const bool dense = static_cast<int64_t>(desc.get_size()) == bytes_of(shape, DType::f32, layout) && describe(shape, layout) == desc;
    return dense ? std::optional(layout) : std::nullopt;
}

dnnl::primitive_attr scratchpad_from_caller() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

void use_threads(int threads) {
    if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

OneDnnKernel::OneDnnKernel(dnnl::primitive primitive, const std::vector<std::pair<int, memory>>& arguments, int threads)
    : primitive_(std::move(primitive)), stream_(engine()), threads_(threads) {
    for (const auto& [index, value] : arguments) {
        memories_.push_back(value);
        arguments_.push_back({index, value.get()});
    }
}

void OneDnnKernel::run(const StepContext&) {
    use_threads(threads_);
    const auto status = dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    CONVOY_CHECK(status == dnnl_success, "oneDNN failed with status {}", static_cast<int>(status));
}

std::unique_ptr<Kernel> prepare_reorder(const Operand& src, const Operand& dst, int threads) {
    use_threads(threads);
    const memory from(describe(src.desc.shape, src.layout, src.desc.dtype), engine(), src.data),
        to(describe(dst.desc.shape, dst.layout, dst.desc.dtype), engine(), dst.data);
    dnnl::reorder::primitive_desc desc(from, to, scratchpad_from_caller());
    CONVOY_CHECK(desc.scratchpad_desc().get_size() == 0, "a reorder from {} to {} wants scratch memory", src.layout.text(),
                 dst.layout.text());
    return std::make_unique<OneDnnKernel>(dnnl::reorder(desc),
                                          std::vector<std::pair<int, memory>>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, threads);
}

}  // namespace convoy::cpu
