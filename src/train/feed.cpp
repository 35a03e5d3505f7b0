#include "train/feed.h"

#include <algorithm>
#include <bit>
#include <cstring>

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

// Elements [first, first + dst.numel()) of `src`. Tensor::to would allocate.
void copy_elements(const Tensor& src, int64_t first, Tensor& dst) {
    const std::byte* from = src.data() + first * size_of(src.dtype());
    if (src.dtype() == dst.dtype()) {
        std::memcpy(dst.data(), from, static_cast<size_t>(dst.bytes()));
    } else {
        CONVOY_CHECK(src.dtype() == DType::f32 && dst.dtype() == DType::bf16, "data of {} for a program of {}", name_of(src.dtype()),
                     name_of(dst.dtype()));
        to_bf16(reinterpret_cast<const float*>(from), reinterpret_cast<uint16_t*>(dst.data()), dst.numel());
    }
}

}  // namespace

BatchProgram::BatchProgram(Session& session, const Graph& graph, int64_t samples, int micro_batches)
    : samples_(samples), executor_(session.load(graph)) {
    const Program& program = executor_->program();
    const auto feed = [&](SlotId slot) { return Feed{slot, executor_->tensor_for(slot)}; };
    for (int m = 0; m < micro_batches; ++m) {
        inputs_.push_back(feed(program.input(micro_name("input", m))));
        targets_.push_back(feed(program.input(micro_name("target", m))));
    }
    CONVOY_CHECK(inputs_[0].staging.shape()[0] * micro_batches == samples, "a program for {} samples in {} micro-batches has inputs of {}",
                 samples, micro_batches, to_string(inputs_[0].staging.shape()));
    if (const auto slot = find(program.inputs, "hyper")) hyper_ = feed(*slot);
    if (const auto slot = find(program.outputs, "correct")) correct_ = feed(*slot);
    loss_ = feed(program.output("loss"));
    executor_->watch(loss_.slot);
}

void BatchProgram::set(const Tensor& rows, std::vector<Feed>& feeds) {
    if (feeds.size() == 1 && rows.shape() == feeds[0].staging.shape() && rows.dtype() == feeds[0].staging.dtype()) {
        executor_->set_input(feeds[0].slot, rows);
        return;
    }
    int64_t first = 0;
    for (Feed& feed : feeds) {
        copy_elements(rows, first, feed.staging);
        executor_->set_input(feed.slot, feed.staging);
        first += feed.staging.numel();
    }
}

void BatchProgram::set(const Batch& batch) {
    CONVOY_CHECK(batch.count == samples_, "a batch of {} for a program of {}", batch.count, samples_);
    set(batch.input, inputs_);
    set(batch.target, targets_);
}

void BatchProgram::set_hyper(double lr, int64_t step) {
    Tensor& hyper = hyper_->staging;
    if (hyper.dtype() == DType::f64) {
        hyper.as<double>()[0] = lr;
        hyper.as<double>()[1] = static_cast<double>(step);
    } else {
        hyper.as<float>()[0] = static_cast<float>(lr);
        hyper.as<float>()[1] = static_cast<float>(step);
    }
    executor_->set_input(hyper_->slot, hyper);
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

int micro_batches_for(int64_t samples, int wanted) { return samples % wanted == 0 ? wanted : 1; }

DType data_type_for(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace convoy
