#include "train/feed.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "model/autodiff.h"

namespace convoy {

namespace {

std::optional<SlotId> find(const std::vector<Binding>& bindings, std::string_view name) {
    const auto at = std::find_if(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.name == name; });
    return at == bindings.end() ? std::nullopt : std::optional<SlotId>(at->slot);
}

// Rounds to nearest, ties to even; what data hold is finite.
void to_bf16(const float* src, uint16_t* dst, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const auto bits = std::bit_cast<uint32_t>(src[i]);
        dst[i] = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
    }
}

void convert(const Tensor& src, int64_t from, Tensor& dst, int64_t to, int64_t count) {
    const std::byte* const in = src.data() + from * size_of(src.dtype());
    std::byte* const out = dst.data() + to * size_of(dst.dtype());
    if (src.dtype() == dst.dtype())
        std::memcpy(out, in, static_cast<size_t>(count * size_of(dst.dtype())));
    else
        to_bf16(reinterpret_cast<const float*>(in), reinterpret_cast<uint16_t*>(out), count);
}

// A box of `src`, row by row. part_of and Tensor::to would allocate.
void copy_box(const Tensor& src, const Box& box, Tensor& dst) {
    CONVOY_CHECK(src.dtype() == dst.dtype() || (src.dtype() == DType::f32 && dst.dtype() == DType::bf16), "data of {} for a program of {}",
                 name_of(src.dtype()), name_of(dst.dtype()));
    if (box.empty()) return;
    const Dims strides = row_major_strides(src.shape());
    int last = box.shape.size() - 1;  // from here on the box is dense
    while (last > 0 && box.shape[last] == src.shape()[last]) --last;
    const int64_t run = box.shape[last] * strides[last];
    int64_t from = 0;
    for (int d = 0; d < box.shape.size(); ++d) from += box.origin[d] * strides[d];
    Dims at = Dims::filled(last, 0);
    for (int64_t to = 0; to < dst.numel(); to += run) {
        convert(src, from, dst, to, run);
        for (int d = last; d-- > 0;) {  // the next row
            from += strides[d];
            if (++at[d] < box.shape[d]) break;
            from -= box.shape[d] * strides[d];
            at[d] = 0;
        }
    }
}

}  // namespace

BatchProgram::BatchProgram(Session& session, const Graph& graph, int64_t samples, int micro_batches)
    : samples_(samples), executor_(session.load(graph)) {
    const Program& program = executor_->program();
    add_feeds("input", micro_batches, inputs_);
    add_feeds("target", micro_batches, targets_);
    for (const auto& [name, slot] : program.inputs)
        if (name == "hyper") hyper_.push_back(feed_of(slot));
    if (const auto slot = find(program.outputs, "correct")) correct_ = feed_of(*slot);
    const auto loss = find(program.outputs, "loss");
    require(loss.has_value(),
            "the plan leaves rank {} without the loss, so that it could not stop when the others do; give the layer of the loss a grid of "
            "all ranks",
            program.rank);
    loss_ = feed_of(*loss);
    executor_->watch(loss_.slot);
}

// A rank may read several forms of an input, or none of it.
void BatchProgram::add_feeds(std::string_view name, int micro_batches, std::vector<Feed>& feeds) {
    const Program& program = executor_->program();
    const int64_t rows = samples_ / micro_batches;
    for (int m = 0; m < micro_batches; ++m)
        for (const auto& [input, slot] : program.inputs) {
            if (input != micro_name(std::string(name), m)) continue;
            const TensorDesc& desc = program.slot(slot).desc;
            CONVOY_CHECK(desc.global[0] == rows, "a program for {} samples in {} micro-batches has inputs of {}", samples_, micro_batches,
                         to_string(desc.global));
            feeds.push_back(feed_of(slot));
            feeds.back().box = {desc.origin, desc.shape};
            feeds.back().box.origin[0] += m * rows;
        }
}

void BatchProgram::set(const Tensor& batch, std::vector<Feed>& feeds) {
    for (Feed& feed : feeds) {
        const bool whole = batch.shape() == feed.staging.shape() && batch.dtype() == feed.staging.dtype();
        if (!whole) copy_box(batch, feed.box, feed.staging);
        executor_->set_input(feed.slot, whole ? batch : feed.staging);
    }
}

void BatchProgram::set(const Batch& batch) {
    CONVOY_CHECK(batch.count == samples_, "a batch of {} for a program of {}", batch.count, samples_);
    set(batch.input, inputs_);
    set(batch.target, targets_);
}

void BatchProgram::set_hyper(double lr, int64_t step) {
    for (Feed& feed : hyper_) {
        Tensor& hyper = feed.staging;
        if (hyper.dtype() == DType::f64) {
            hyper.as<double>()[0] = lr;
            hyper.as<double>()[1] = static_cast<double>(step);
        } else {
            hyper.as<float>()[0] = static_cast<float>(lr);
            hyper.as<float>()[1] = static_cast<float>(step);
        }
        executor_->set_input(feed.slot, hyper);
    }
}

double BatchProgram::loss() {
    executor_->read(loss_.slot, loss_.staging);
    return element(loss_.staging, 0);
}

std::optional<double> BatchProgram::correct() {
    if (!correct_) return std::nullopt;
    executor_->read(correct_->slot, correct_->staging);
    return element(correct_->staging, 0);
}

std::optional<std::string> first_non_finite(BatchProgram& program, const StepContext& context, const Team& team) {
    int where = 0;
    const auto found = program.executor().find_non_finite(context, &where);
    const std::string text = team.earliest(found ? where : std::numeric_limits<int>::max(), found.value_or(""));
    return text.empty() ? std::nullopt : std::optional(text);
}

int micro_batches_for(int64_t samples, int wanted) { return samples % wanted == 0 ? wanted : 1; }

DType data_type_for(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace convoy
