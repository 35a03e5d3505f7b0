#include "train/feed.h"

#include <algorithm>
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

// A box of `src` to a dense tensor of its shape. part_of and Tensor::to would allocate.
void copy_part(const Tensor& src, const Box& box, std::byte* dst, DType type) {
    CONVOY_CHECK(src.dtype() == type || (src.dtype() == DType::f32 && type == DType::bf16), "data of {} for a program of {}",
                 name_of(src.dtype()), name_of(type));
    for_each_run(src.shape(), box, [&](int64_t from, int64_t to, int64_t count) {
        const std::byte* const in = src.data() + from * size_of(src.dtype());
        std::byte* const out = dst + to * size_of(type);
        if (src.dtype() == type)
            std::memcpy(out, in, static_cast<size_t>(count * size_of(type)));
        else
            round_to_bf16(reinterpret_cast<const float*>(in), reinterpret_cast<uint16_t*>(out), count);
    });
}

std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.data(), static_cast<size_t>(tensor.bytes())}; }

}  // namespace

BatchProgram::BatchProgram(Session& session, const Graph& graph, int64_t samples, int micro_batches)
    : samples_(samples), executor_(session.load(graph)) {
    const Program& program = executor_->program();
    add_feeds("input", micro_batches, inputs_);
    add_feeds("target", micro_batches, targets_);
    for (const auto* feeds : {&inputs_, &targets_})
        for (const Feed& feed : *feeds) sends_ahead_ = sends_ahead_ || feed.intake;
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
            Feed& feed =
                feeds.emplace_back(Feed{.slot = slot, .staging = {}, .box = {desc.origin, desc.shape}, .intake = executor_->intake(slot)});
            if (!feed.intake) feed.staging = executor_->tensor_for(slot);
            feed.box.origin[0] += m * rows;
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

DType BatchProgram::input_type() const {
    const Program& program = executor_->program();
    if (!inputs_.empty()) return program.slot(inputs_[0].slot).desc.dtype;
    return program.dtype == DType::f64 ? DType::f64 : DType::f32;
}

bool BatchProgram::takes_whole(const Tensor& batch, const Feed& feed) const {
    const TensorDesc& desc = executor_->program().slot(feed.slot).desc;
    return batch.shape() == desc.shape && batch.dtype() == desc.dtype;
}

void BatchProgram::send(const Tensor& batch, std::vector<Feed>& feeds) {
    for (Feed& feed : feeds) {
        if (takes_whole(batch, feed)) {
            feed.intake->send(bytes_of(batch));
            continue;
        }
        const std::span<std::byte> memory = feed.intake->memory();
        copy_part(batch, feed.box, memory.data(), executor_->program().slot(feed.slot).desc.dtype);
        feed.intake->send(memory);
    }
}

void BatchProgram::require_part(const Batch& batch) const {
    CONVOY_CHECK(batch.count == samples_, "a batch of {} for a program of {}", batch.count, samples_);
    const auto rows = [](const TensorPart& part) { return static_cast<int64_t>(part.rows.size()); };
    CONVOY_CHECK(batch.input.shape()[0] == rows(part_.input) && batch.target.shape()[0] == rows(part_.target), "another part of a batch");
}

void BatchProgram::send(const Batch& batch) {
    require_part(batch);
    send(batch.input, inputs_);
    send(batch.target, targets_);
    sent_ = &batch;
}

void BatchProgram::set(const Tensor& batch, std::vector<Feed>& feeds) {
    for (Feed& feed : feeds) {
        if (feed.intake) {
            feed.intake->take();
            continue;
        }
        const bool whole = takes_whole(batch, feed);
        if (!whole) copy_part(batch, feed.box, feed.staging.data(), feed.staging.dtype());
        executor_->set_input(feed.slot, whole ? batch : feed.staging);
    }
}

void BatchProgram::set(const Batch& batch) {
    require_part(batch);
    if (sends_ahead_ && sent_ != &batch) send(batch);
    set(batch.input, inputs_);
    set(batch.target, targets_);
    sent_ = nullptr;
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

}  // namespace convoy
