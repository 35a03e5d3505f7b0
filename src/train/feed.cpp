#include "train/feed.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"
#include "data/runs.h"
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

// A box of `src`. part_of and Tensor::to would allocate.
void copy_part(const Tensor& src, const Box& box, Tensor& dst) {
    CONVOY_CHECK(src.dtype() == dst.dtype() || (src.dtype() == DType::f32 && dst.dtype() == DType::bf16), "data of {} for a program of {}",
                 name_of(src.dtype()), name_of(dst.dtype()));
    for_each_run(src.shape(), box, [&](int64_t from, int64_t to, int64_t count) { convert(src, from, dst, to, count); });
}

}  // namespace

BatchProgram::BatchProgram(Session& session, const Graph& graph, int64_t samples, int micro_batches)
    : samples_(samples), executor_(session.load(graph)) {
    const Program& program = executor_->program();
    add_feeds("input", micro_batches, inputs_);
    add_feeds("target", micro_batches, targets_);
    part_ = {part_of(inputs_), part_of(targets_)};
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

// The rows and the box around all that the feeds want, which are then changed to say where in that it lies. What several of them want is read once.
TensorPart BatchProgram::part_of(std::vector<Feed>& feeds) {
    TensorPart part;
    std::set<int64_t> rows;
    for (const Feed& feed : feeds) {
        const Box sample{feed.box.origin.slice(1), feed.box.shape.slice(1)};
        if (part.box.shape.size() != sample.shape.size())
            part.box = {Dims::filled(sample.shape.size(), 0), Dims::filled(sample.shape.size(), 0)};
        if (feed.box.empty()) continue;
        for (int64_t row = feed.box.begin(0); row < feed.box.end(0); ++row) rows.insert(row);
        const Box before = part.box;
        if (before.empty()) part.box = sample;
        for (int d = 0; d < sample.shape.size() && !before.empty(); ++d)
            part.box = part.box.with(d, std::min(before.begin(d), sample.begin(d)), std::max(before.end(d), sample.end(d)));
    }
    part.rows.assign(rows.begin(), rows.end());
    for (Feed& feed : feeds) {
        if (feed.box.empty()) continue;
        feed.box.origin[0] = std::lower_bound(part.rows.begin(), part.rows.end(), feed.box.origin[0]) - part.rows.begin();
        for (int d = 0; d < part.box.shape.size(); ++d) feed.box.origin[d + 1] -= part.box.origin[d];
    }
    return part;
}

void BatchProgram::set(const Tensor& batch, std::vector<Feed>& feeds) {
    for (Feed& feed : feeds) {
        const bool whole = batch.shape() == feed.staging.shape() && batch.dtype() == feed.staging.dtype();
        if (!whole) copy_part(batch, feed.box, feed.staging);
        executor_->set_input(feed.slot, whole ? batch : feed.staging);
    }
}

void BatchProgram::set(const Batch& batch) {
    CONVOY_CHECK(batch.count == samples_, "a batch of {} for a program of {}", batch.count, samples_);
    const auto rows = [](const TensorPart& part) { return static_cast<int64_t>(part.rows.size()); };
    CONVOY_CHECK(batch.input.shape()[0] == rows(part_.input) && batch.target.shape()[0] == rows(part_.target), "another part of a batch");
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

std::optional<BatchProgram::Part> BatchProgram::output(std::string_view name) const {
    const auto slot = find(executor_->program().outputs, name);
    if (!slot) return std::nullopt;
    const TensorDesc& desc = executor_->program().slot(*slot).desc;
    return Part{executor_->read(*slot), {desc.origin, desc.shape}};
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
