#include "tune/measure.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "program/key.h"

namespace convoy {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kUnusable = 1e6;  // seconds of a kernel that must not be chosen; finite, so that it can be kept

// Positive numbers of ordinary size, so that whatever a kernel does with them (square roots of variances, logarithms) stays finite; integers are zeros,
// which any index may be.
Tensor ordinary(const Shape& shape, DType type) {
    Tensor tensor(shape, is_floating(type) ? DType::f32 : type);
    if (!is_floating(type)) return tensor;
    constexpr size_t kDistinct = 100'003;
    const RandomStream random{.seed = 1, .stream = stream_of("tune")};
    const auto values = tensor.as<float>();
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = i < kDistinct ? 0.5f + static_cast<float>(random.uniform(i)) : values[i - kDistinct];
    return type == DType::f32 || type == DType::tf32 ? std::move(tensor) : tensor.to(type);
}

// Of a maximum pooling, for every output: the first place in its window that is no padding. Gradients write where these say.
Tensor first_places(const Window& window, const Dims& input, const Shape& shape, DType type) {
    Tensor wide(shape, DType::i32);
    const auto places = wide.as<int32_t>();
    const Shape out = shape.slice(2);
    for (size_t i = 0; i < places.size(); ++i) {
        auto rest = static_cast<int64_t>(i);
        int64_t place = 0, taps = 1;
        for (int d = out.size() - 1; d >= 0; --d) {
            const int64_t at = rest % out[d] * window.stride[d] - window.pad_lo[d];
            rest /= out[d];
            int64_t k = 0;
            while (k + 1 < window.kernel[d] && (at + k * window.dilation[d] < 0 || at + k * window.dilation[d] >= input[d])) ++k;
            place += k * taps;
            taps *= window.kernel[d];
        }
        places[i] = static_cast<int32_t>(place);
    }
    return type == DType::i32 ? std::move(wide) : wide.to(type);
}

// The i-th input of a problem, in this type.
Tensor input_of(const Problem& problem, size_t i, DType type) {
    const Shape& shape = problem.tensors[i].shape;
    for (const ProblemStep& step : problem.steps)
        if (const auto* pool = std::get_if<MaxPoolGradOp>(&step.op); pool && step.inputs[1] == static_cast<int>(i))
            return first_places(pool->window, pool->input, shape, type);
    return ordinary(shape, type);
}

// What a kernel's operands are, and its runs so far.
struct Contestant {
    std::unique_ptr<Kernel> kernel;
    std::vector<double> times;
    bool out = false;

    double seconds() const {
        if (times.empty()) return kNever;
        std::vector<double> sorted = times;
        std::sort(sorted.begin(), sorted.end());
        return sorted[(sorted.size() - 1) / 4];
    }
};

class Clocked {
  public:
    Clocked(Backend& backend, const MeasureOptions& options) : backend_(backend), options_(options) {
        if (options.cold && backend.on_host()) sweep_.emplace(options.threads);
    }

    // The seconds of one run. A device is given several at a time, because starting one costs the host more than a small one takes.
    double run(Kernel& kernel, int times = 1) {
        if (sweep_) sweep_->run();
        backend_.synchronize();
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < times; ++i) kernel.run({});
        backend_.synchronize();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
    }

    // Rounds in which all that are still in take turns. `sound` says after the first run of each whether it may take part.
    void rounds(
        std::vector<Contestant>& contestants, const std::function<bool(size_t)>& sound = [](size_t) { return true; }) {
        const int repeats = backend_.on_host() ? 1 : 10;
        // A short run may be slow because something else ran meanwhile, so it takes several to be left behind; one that takes long is not that unlucky.
        constexpr double kFarBehind = 5, kLong = 0.1;
        constexpr size_t kSeveral = 3;
        double first = kNever;
        for (size_t i = 0; i < contestants.size();
             ++i) {  // libraries load and compile what they need when they first run, which does not count
            Contestant& c = contestants[i];
            const double seconds = run(*c.kernel);
            if (!sound(i)) {
                c.times.push_back(kUnusable);
                c.out = true;
                continue;
            }
            first = std::min(first, seconds);
            if (seconds <= kFarBehind * first || seconds < kLong) continue;
            c.times.push_back(seconds);
            c.out = true;
        }
        std::vector<double> spent(contestants.size(), 0);
        for (int round = 0; round < options_.rounds; ++round) {
            double best = kNever;
            bool any = false;
            for (size_t i = 0; i < contestants.size(); ++i) {
                Contestant& c = contestants[i];
                if (!c.out && (c.times.empty() || spent[i] < options_.seconds)) {
                    c.times.push_back(run(*c.kernel, repeats));
                    spent[i] += c.times.back() * repeats;
                    any = true;
                }
                if (!c.times.empty()) best = std::min(best, c.seconds());
            }
            if (!any) return;
            for (Contestant& c : contestants) {
                if (c.out || c.times.empty()) continue;
                const double least = *std::min_element(c.times.begin(), c.times.end());
                c.out = least > best * options_.hopeless && (c.times.size() >= kSeveral || least > kLong);
            }
        }
    }

  private:
    Backend& backend_;
    const MeasureOptions& options_;
    std::optional<CacheSweep> sweep_;
};

// Memory with a margin on both sides that nobody may write to.
class Guarded {
  public:
    Guarded(Backend& backend, int64_t bytes) : backend_(backend), memory_(backend.allocate(bytes + 2 * kMargin)), bytes_(bytes) {
        memory_->fill(kMark);  // which also gives it its pages
    }
    std::byte* data() { return memory_->data() + kMargin; }
    bool intact() {
        if (!backend_.on_host()) return true;
        const auto whole = [](const std::byte* from) {
            return std::all_of(from, from + kMargin, [](std::byte b) { return b == std::byte{kMark}; });
        };
        return whole(memory_->data()) && whole(data() + bytes_);
    }
    void mend() { memory_->fill(kMark); }

  private:
    static constexpr int64_t kMargin = 4096;
    static constexpr uint8_t kMark = 0x3c;  // four of them are a small number

    Backend& backend_;
    std::unique_ptr<Memory> memory_;
    int64_t bytes_;
};

}  // namespace

CacheSweep::CacheSweep(int threads) : threads_(threads) {
    constexpr size_t kEach = size_t{8} << 20;  // bytes of each thread: several times the cache of a core
    memory_.assign(kEach / sizeof(float) * static_cast<size_t>(threads), 1.0f);
}

void CacheSweep::run() {
    const auto each = static_cast<int64_t>(memory_.size()) / threads_;
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int t = 0; t < threads_; ++t) {
        float* const own = memory_.data() + t * each;
        for (int64_t i = 0; i < each; i += 4) own[i] += 1;
    }
}

Contest::Contest(Backend& backend, const Problem& problem, const MeasureOptions& options)
    : backend_(backend), problem_(problem), options_(options) {}

Contest::~Contest() = default;

Operand Contest::input(size_t i, const Candidate& candidate) {
    const TensorDesc& desc = problem_.tensors[i];
    Operand operand{.desc = desc, .layout = candidate.inputs[i]};
    if (!candidate.input_types.empty()) operand.desc.dtype = candidate.input_types[i];
    const DType type = operand.desc.dtype;
    auto& memory = inputs_[fmt::format("{} {} {}", i, operand.layout.text(), name_of(type))];
    const bool fresh = !memory;
    if (fresh) memory = backend_.allocate(bytes_of(desc.shape, type, operand.layout));
    operand.data = memory->data();
    if (fresh) {
        memory->fill(0);  // the padding of blocked layouts
        backend_.upload(input_of(problem_, i, type), operand);
    }
    return operand;
}

std::unique_ptr<Kernel> Contest::prepare(const Candidate& candidate, const std::vector<void*>& outputs, void* workspace) {
    KernelRequest request{
        .problem = problem_, .algorithm = candidate.algorithm, .workspace = workspace, .workspace_bytes = candidate.workspace_bytes};
    for (size_t i = 0; i < candidate.inputs.size(); ++i) request.inputs.push_back(input(i, candidate));
    for (size_t i = 0; i < candidate.outputs.size(); ++i)
        request.outputs.push_back({outputs[i], problem_.tensors[static_cast<size_t>(problem_.inputs) + i], candidate.outputs[i]});
    return backend_.prepare(request);
}

std::vector<double> Contest::run(const std::vector<Candidate>& candidates) {
    int64_t workspace_bytes = 0;
    std::vector<int64_t> output_bytes(static_cast<size_t>(problem_.outputs), 0);
    for (const Candidate& candidate : candidates) {
        workspace_bytes = std::max(workspace_bytes, candidate.workspace_bytes);
        for (size_t i = 0; i < output_bytes.size(); ++i) {
            const TensorDesc& desc = problem_.tensors[static_cast<size_t>(problem_.inputs) + i];
            output_bytes[i] = std::max(output_bytes[i], bytes_of(desc.shape, desc.dtype, candidate.outputs[i]));
        }
    }
    std::vector<std::unique_ptr<Guarded>> written;  // the outputs, then the workspace
    for (const int64_t bytes : output_bytes) written.push_back(std::make_unique<Guarded>(backend_, bytes));
    written.push_back(std::make_unique<Guarded>(backend_, workspace_bytes));
    std::vector<void*> outputs;
    for (size_t i = 0; i < output_bytes.size(); ++i) outputs.push_back(written[i]->data());
    std::vector<Contestant> contestants;
    for (const Candidate& candidate : candidates)
        contestants.push_back({.kernel = prepare(candidate, outputs, workspace_bytes > 0 ? written.back()->data() : nullptr)});
    // In a step a kernel that writes outside its memory would spoil another's.
    const auto sound = [&](size_t i) {
        if (std::all_of(written.begin(), written.end(), [](const auto& w) { return w->intact(); })) return true;
        for (const auto& w : written) w->mend();
        warn("{} is not used for {}: it writes outside its memory", candidates[i].algorithm, key_of(problem_));
        return false;
    };
    Clocked(backend_, options_).rounds(contestants, sound);
    std::vector<double> seconds;
    for (const Contestant& c : contestants) seconds.push_back(c.seconds());
    return seconds;
}

double measure(Backend& backend, const Problem& problem, const Candidate& candidate, const MeasureOptions& options) {
    return Contest(backend, problem, options).run({candidate})[0];
}

double measure_copy(Backend& backend, const CopyProblem& copy, const MeasureOptions& options) {
    const auto memory = [&](DType type, const Layout& layout) {
        auto block = backend.allocate(bytes_of(copy.shape, type, layout));
        block->fill(0);
        return block;
    };
    const auto from = memory(copy.from_type, copy.from), to = memory(copy.to_type, copy.to);
    const Operand src{from->data(), TensorDesc::whole(copy.shape, copy.from_type), copy.from};
    const Operand dst{to->data(), TensorDesc::whole(copy.shape, copy.to_type), copy.to};
    backend.upload(ordinary(copy.shape, copy.from_type), src);
    std::vector<Contestant> one;
    one.push_back({.kernel = backend.prepare_copy(src, dst)});
    Clocked(backend, options).rounds(one);
    return one[0].seconds();
}

}  // namespace convoy
