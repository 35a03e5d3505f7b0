#include "kernels/cuda/library_conv.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/engine_cache.h"
#include "kernels/cuda/library_plan.h"
#include "kernels/cuda/library_workspace.h"
#include "kernels/cuda/product_conv.h"
#include "kernels/cuda/slices.h"
#include "kernels/cuda/tiled_grad_weight.h"
#include "kernels/cuda/tune.h"
#include "kernels/cuda/views.h"
#include "kernels/function_kernel.h"
#include "program/key.h"

namespace convoy::cuda {

namespace {

constexpr int64_t kAlignment = Scratch::kAlignment;
int64_t bytes_of(const Operand& o) { return numel(o.desc.shape) * size_of(o.desc.dtype); }

using Start = std::function<void()>;
struct Way {
    std::string name;
    std::function<Start(Scratch)> make;  // an empty Start: it cannot be done so
    double unless = 0;                   // operations a second: not tried where another way has more (0: tried in any case)
};

// dst[i] = src[i + origin]
void copy_from_box(const Device& device, const Operand& src, const Operand& dst, const Dims& origin) {
    const Dims strides = strides_of(src.desc.shape, src.layout);
    int64_t offset = 0;
    for (int d = 0; d < origin.size(); ++d) offset += origin[d] * strides[d];
    start_copy(device, dst.desc.shape, {static_cast<std::byte*>(src.data) + offset * size_of(src.desc.dtype), src.desc.dtype, strides},
               {dst.data, dst.desc.dtype, strides_of(dst.desc.shape, dst.layout)});
}
// dst[i + origin] = src[i]
void copy_to_box(const Device& device, const Operand& src, const Operand& dst, const Dims& origin) {
    const Dims strides = strides_of(dst.desc.shape, dst.layout);
    int64_t offset = 0;
    for (int d = 0; d < origin.size(); ++d) offset += origin[d] * strides[d];
    start_copy(device, src.desc.shape, {src.data, src.desc.dtype, strides_of(src.desc.shape, src.layout)},
               {static_cast<std::byte*>(dst.data) + offset * size_of(dst.desc.dtype), dst.desc.dtype, strides});
}

class LibraryConv {
  public:
    LibraryConv(const KernelRequest& request, const ConvProblem& conv, Device& device, bool transforms)
        : device_(device),
          problem_(request.problem),
          compute_(request.problem.compute),
          groups_(conv.groups),
          work_(work_of(request.problem)),
          follow_{conv.bias == kNoTensor ? nullptr : operand(request, conv.bias).data, conv.activation},
          asked_{conv.direction, conv.window, compute_, operand(request, conv.x), operand(request, conv.w), operand(request, conv.y)},
          scratch_(request.workspace, request.workspace_bytes) {
        asked_.transforms = transforms;
    }

    std::unique_ptr<Kernel> kernel(std::string& why) {
        const auto list = ways();
        std::string question = fmt::format("{}{}, one of ways {}:", text_of(asked_), follow_.text(), kWays);
        for (const Way& way : list) question += " " + way.name + ",";
        if (auto known = chosen_before(list, question)) return known;
        const EngineCache::Turn turn(EngineCache::shared());
        if (auto known = chosen_before(list, question)) return known;
        Start best;
        std::string chosen;
        double seconds = 0;
        int64_t bytes = 0;
        for (const Way& way : list) {
            if (way.unless > 0 && best && work_ / seconds > way.unless) continue;
            hopeless_ = best ? 2 * seconds : 0;
            Start start = way.make(scratch_);
            if (!start) continue;
            double taken = 0;
            try {
                taken = measure_runs(device_, start, best ? 2 * seconds : 0);
            } catch (const Error& e) {
                failures_.add(e);  // it cannot be done so after all
                continue;
            }
            if (best && taken >= seconds) continue;
            best = std::move(start);
            chosen = way.name;
            seconds = taken;
            bytes = needed_;
        }
        if (!best && failures_.for_memory) lack_memory();
        if (!best) {
            why = failures_.last.empty() ? "there is too little scratch memory" : failures_.last;
            return nullptr;
        }
        if (!failures_.for_memory) remember(device_, question, chosen);
        return kept(std::move(best), bytes);
    }

  private:
    std::unique_ptr<Kernel> chosen_before(const std::vector<Way>& list, const std::string& question) {
        if (const auto known = remembered(device_, question))
            for (const Way& way : list)
                if (way.name == *known)
                    if (Start start = way.make(scratch_)) return kept(std::move(start), needed_);
        if (failures_.for_memory) lack_memory();  // another way would be slower, and give other bits
        return nullptr;
    }

    [[noreturn]] void lack_memory() const {
        throw OutOfMemory(fmt::format(
            "{} has too little memory left beside the program for the library to compute {}: {}. A smaller batch or more micro-batches "
            "need less",
            device_.name(), key_of(problem_), failures_.last));
    }

    // The next plan will know how much it needs.
    std::unique_ptr<Kernel> kept(Start start, int64_t bytes) const {
        if (!failures_.for_memory) remember_workspace(problem_, asked_.transforms, bytes);
        return make_kernel([start = std::move(start)](const StepContext&) { start(); });
    }

    std::vector<Way> ways() const {
        std::vector<Way> list;
        if (wants_tiles()) list.push_back({"by tiles", [this](Scratch s) { return by_tiles(s); }});
        // An engine may take what is behind for as much as what is before: seen with gradients of weights in f32.
        const bool even = asked_.window.pad_lo == asked_.window.pad_hi;
        const bool gradient = asked_.direction == Direction::GradWeight;
        if (!even) {
            list.push_back({"written out", [this](Scratch s) { return written_out(s); }});
            return list;
        }
        constexpr double kAnyGood = 5e12;
        // With tensor cores the engines that fuse, and those that write as they read, were never behind.
        const bool widens = gradient && asked_.w.desc.dtype != asked_.x.desc.dtype;
        if (follow_) list.push_back({"plain, at once", [this](Scratch s) { return plainly(at_once(asked_), s); }});
        if (widens) list.push_back({"rounded first", [this](Scratch s) { return rounded_first(asked_, s); }});
        const bool behind = compute_ == DType::f32 ? wants_tiles() && asked_.window.rank() == 3 : follow_ || widens;
        list.push_back({"plain", [this](Scratch s) { return followed(plainly(asked_, s)); }, behind ? kAnyGood : 0});
        if (wants_channels() && follow_) list.push_back({"wide, at once", [this](Scratch s) { return wide(s, true); }});
        if (wants_channels()) list.push_back({"wide", [this](Scratch s) { return wide(s, false); }});
        if (compute_ == DType::f32 && is_product(product(false), groups_)) {
            list.push_back({"products", [this](Scratch s) { return followed(as_products(s, false)); }});
            if (gradient) list.push_back({"joined products", [this](Scratch s) { return as_products(s, true); }});
        }
        if (can_mirror()) list.push_back({"mirrored", [this](Scratch s) { return followed(mirrored(s)); }});
        for (const int count : {1, 2, 3})
            if (wants_slices(count))
                list.push_back({fmt::format("in {} slices", count), [this, count](Scratch s) { return in_slices(count, s); },
                                count == 1                ? 0
                                : compute_ == DType::tf32 ? 150e12
                                                          : 400e12});
        for (const int parts : {4, 16})
            if (gradient && asked_.x.desc.shape[0] % parts == 0)
                list.push_back({fmt::format("in {} parts", parts), [this, parts](Scratch s) { return in_parts(parts, s); }, kAnyGood});
        return list;
    }

    // --- Ways -----------------------------------------------------------------------------------------------------------------------

    Start plainly(const Asked& a, Scratch s) const {
        auto plan = tuned(a, s);
        if (!plan) return nullptr;
        return [&device = device_, plan = std::move(plan)] { plan->run(device); };
    }

    Asked at_once(Asked a) const {
        a.at_once = follow_;
        return a;
    }

    // The bias and the activation in a pass of their own.
    Start followed(Start start) const {
        if (!start || !follow_) return start;
        return [start = std::move(start), &device = device_, y = asked_.y, follow = follow_] {
            start();
            start_bias(device, y, follow.bias, follow.activation ? &*follow.activation : nullptr);
        };
    }

    // The gradient of weights that are wider than the activations, rounded and then widened.
    Start rounded_first(const Asked& a, Scratch s) const {
        Asked narrow = a;
        narrow.w.desc.dtype = a.x.desc.dtype;
        narrow.w.data = s.take(bytes_of(narrow.w));
        Start start = narrow.w.data ? plainly(narrow, s) : nullptr;
        if (!start) return nullptr;
        return [start = std::move(start), &device = device_, from = narrow.w, to = a.w] {
            start();
            start_copy(device, from, to);
        };
    }

    // Tensor cores want packs of channels; an image has three.
    int64_t pack() const { return compute_ == DType::bf16 ? 8 : compute_ == DType::tf32 ? 4 : 1; }
    bool wants_channels() const {
        return asked_.direction != Direction::GradInput && groups_ == 1 && asked_.x.desc.shape[1] % pack() != 0 &&
               !asked_.x.layout.is_plain();
    }
    Start wide(Scratch s, bool fused) const {
        Asked a = asked_;
        const bool forward = a.direction == Direction::Forward;
        const int64_t channels = (a.x.desc.shape[1] + pack() - 1) / pack() * pack();
        a.x.desc.shape[1] = a.w.desc.shape[1] = channels;
        if (!forward) a.w.desc.dtype = a.x.desc.dtype;
        if (forward && fused) a.at_once = follow_;
        a.x.data = s.take(bytes_of(a.x));
        a.w.data = a.x.data ? s.take(bytes_of(a.w)) : nullptr;
        Start start = a.w.data ? plainly(a, s) : nullptr;
        if (!start) return nullptr;
        if (forward && !fused) start = followed(std::move(start));
        return [start = std::move(start), &device = device_, own = asked_, a, forward] {
            start_widen(device, own.x, a.x);
            if (forward) start_widen(device, own.w, a.w);
            start();
            if (!forward) copy_from_box(device, a.w, own.w, Dims::filled(own.w.desc.shape.size(), 0));
        };
    }

    // Volumes, and few channels: what the library's engines are slow with.
    bool wants_tiles() const {
        if (asked_.direction != Direction::GradWeight || groups_ != 1) return false;
        constexpr int64_t kFew = 16;
        return (compute_ == DType::f32 && asked_.window.rank() == 3) || asked_.x.desc.shape[1] < (compute_ == DType::f32 ? kFew : pack());
    }
    Start by_tiles(Scratch s) const {
        const auto conv = tiled_grad_weight(asked_.window, asked_.x, asked_.w, asked_.y);
        void* const parts = conv ? s.take(conv->scratch_bytes) : nullptr;
        if (!parts) return nullptr;
        needed_ = scratch_.left() - s.left();
        return
            [&device = device_, conv = *conv, own = asked_, parts] { start_tiled_grad_weight(device, conv, own.x, own.y, own.w, parts); };
    }

    ProductConv product(bool join) const { return {asked_.direction, asked_.window, asked_.x, asked_.w, asked_.y, join}; }
    Start as_products(Scratch s, bool join) const {
        try {
            int64_t left = 0;
            Start start = product_conv(device_, product(join), compute_, s, left);
            needed_ = scratch_.left() - left;
            return start;
        } catch (const Error& e) {
            failures_.add(e);  // no product that the library takes
            return nullptr;
        }
    }

    // The input with its padding around it, so that the library pads nothing.
    Start written_out(Scratch s) const {
        Asked a = asked_;
        const Window& w = asked_.window;
        Dims origin = Dims::filled(a.x.desc.shape.size(), 0);
        for (int d = 0; d < w.rank(); ++d) {
            origin[2 + d] = w.pad_lo[d];
            a.x.desc.shape[2 + d] += w.pad_lo[d] + w.pad_hi[d];
            a.window.pad_lo[d] = a.window.pad_hi[d] = 0;
        }
        a.x.data = s.take(bytes_of(a.x));
        if (!a.x.data) return nullptr;
        const bool narrows = a.direction == Direction::GradWeight && a.w.desc.dtype != a.x.desc.dtype;
        Start start = narrows ? rounded_first(a, s) : plainly(a, s);
        if (!start) return nullptr;
        if (a.direction == Direction::GradInput)
            return followed([start = std::move(start), &device = device_, own = asked_, a, origin] {
                start();
                copy_from_box(device, a.x, own.x, origin);
            });
        return followed([start = std::move(start), &device = device_, own = asked_, a, origin] {
            start_fill(device, a.x.data, a.x.desc.dtype, numel(a.x.desc.shape), 0);
            copy_to_box(device, own.x, a.x, origin);
            start();
        });
    }

    // With stride 1 a convolution is the gradient of another one's input, and the other way round, with weights transposed and turned. Of the
    // engines that transform, the library has some for one direction only.
    bool can_mirror() const {
        const Window& w = asked_.window;
        if (compute_ != DType::f32 || groups_ != 1 || asked_.direction == Direction::GradWeight) return false;
        for (int d = 0; d < w.rank(); ++d)
            if (w.stride[d] != 1 || w.dilation[d] != 1 || w.pad_lo[d] > w.kernel[d] - 1) return false;
        return numel(w.kernel) > 1;
    }
    Start mirrored(Scratch s) const {
        Asked a = asked_;
        a.direction = asked_.direction == Direction::Forward ? Direction::GradInput : Direction::Forward;
        std::swap(a.x, a.y);
        std::swap(a.w.desc.shape[0], a.w.desc.shape[1]);
        for (int d = 0; d < a.window.rank(); ++d)
            a.window.pad_lo[d] = a.window.pad_hi[d] = a.window.kernel[d] - 1 - asked_.window.pad_lo[d];
        a.w.data = s.take(bytes_of(a.w));
        Start start = a.w.data ? plainly(a, s) : nullptr;
        if (!start) return nullptr;
        // Turned: read from the last tap backwards.
        const Shape& shape = a.w.desc.shape;
        Dims from = strides_of(asked_.w.desc.shape, asked_.w.layout);
        std::swap(from[0], from[1]);
        int64_t last = 0;
        for (int d = 2; d < shape.size(); ++d) {
            last += from[d] * (shape[d] - 1);
            from[d] = -from[d];
        }
        const CopyEnd src{static_cast<std::byte*>(asked_.w.data) + last * size_of(asked_.w.desc.dtype), asked_.w.desc.dtype, from};
        const CopyEnd dst{a.w.data, a.w.desc.dtype, strides_of(shape, a.w.layout)};
        return [start = std::move(start), &device = device_, shape, src, dst] {
            start_copy(device, shape, src, dst);
            start();
        };
    }

    // The gradient of weights by slices of the channels, over which the library's engines are faster where there are many of both channels and positions;
    // and in tf32, for which they are slow, with its ten digits in halves.
    bool wants_slices(int count) const {
        return asked_.direction == Direction::GradWeight && groups_ == 1 && !asked_.x.layout.is_plain() &&
               can_cut({compute_, asked_.x.desc.shape[1], asked_.y.desc.shape[1], work_}, count);
    }
    Start in_slices(int count, Scratch s) const {
        Slices slices{count, asked_.x, asked_.w, asked_.y};
        if (slices.halved()) slices.parts = parts_of_batch(asked_.x.desc.shape, count);
        Asked a = asked_;
        a.x.desc.shape[1] = a.w.desc.shape[1] = asked_.x.desc.shape[1] / count;
        a.x.desc.shape[0] = a.y.desc.shape[0] = asked_.x.desc.shape[0] / slices.parts;
        const DType type = slices.halved() ? DType::f16 : a.x.desc.dtype;
        a.x.desc.dtype = a.w.desc.dtype = a.y.desc.dtype = type;
        a.x.data = slices.x_piece = s.take(bytes_of(a.x));
        a.w.data = slices.products = s.take(slices.pieces() * bytes_of(a.w));
        if (slices.halved()) {
            a.y.data = slices.y_halves = s.take(bytes_of(a.y));
            slices.scales = s.take(slices.scales_bytes());
        }
        if (!a.x.data || !a.w.data || !a.y.data || (slices.halved() && !slices.scales)) return nullptr;
        auto plans = repeated(a, slices.pieces(), {.w = bytes_of(a.w)}, s);
        if (plans.empty()) return nullptr;
        return [&device = device_, plans = std::move(plans), slices] {
            start_scaling(device, slices);
            for (int i = 0; i < slices.pieces(); ++i) {
                start_cutting(device, slices, i);
                plans[static_cast<size_t>(i)].run(device);
            }
            start_joining(device, slices);
        };
    }

    // The gradient of weights by parts of the batch, whose sums are added: an engine that cannot be had for the whole may be had for a part.
    Start in_parts(int parts, Scratch s) const {
        Asked a = asked_;
        a.x.desc.shape[0] /= parts;
        a.y.desc.shape[0] /= parts;
        void* const sums = a.w.data = s.take(bytes_of(a.w) * parts);
        if (!sums) return nullptr;
        auto plans = repeated(a, parts, {.x = bytes_of(a.x), .w = bytes_of(a.w), .y = bytes_of(a.y)}, s);
        if (plans.empty()) return nullptr;
        return [&device = device_, plans = std::move(plans), sums, w = asked_.w] {
            for (const ExecutionPlan& plan : plans) plan.run(device);
            start_sum_of_parts(device, sums, static_cast<int>(plans.size()), w);
        };
    }

    // Plans for so many pieces, each time with the operands so many bytes further. None when the library takes no such pieces.
    struct Steps {
        int64_t x = 0, w = 0, y = 0;
    };
    std::vector<ExecutionPlan> repeated(const Asked& a, int count, const Steps& step, const Scratch& s) const {
        std::vector<ExecutionPlan> plans;
        const auto at = [](const Operand& o, int64_t offset) { return static_cast<std::byte*>(o.data) + offset; };
        if (count > 1 && (step.x % kAlignment != 0 || step.w % kAlignment != 0 || step.y % kAlignment != 0)) return plans;
        const auto first = tuned(a, s);
        for (int i = 0; first && i < count; ++i) {
            plans.push_back(*first);
            plans.back().bind({{kX, at(a.x, i * step.x)}, {kW, at(a.w, i * step.w)}, {kY, at(a.y, i * step.y)}}, s.rest());
        }
        return plans;
    }

    std::shared_ptr<ExecutionPlan> tuned(const Asked& a, const Scratch& s) const {
        auto plan = library_plan(device_, a, s, hopeless_, failures_);
        if (plan) needed_ = scratch_.left() - s.left() + plan->workspace_bytes();
        return plan;
    }

    Device& device_;
    const Problem& problem_;
    DType compute_;
    int64_t groups_;
    double work_;
    Follow follow_;
    Asked asked_;
    Scratch scratch_;
    mutable int64_t needed_ = 0;  // by the way that was made last
    mutable Failures failures_;
    double hopeless_ = 0;  // as in TuneRequest
};

}  // namespace

Layout library_layout(DType compute, int rank) {
    return compute == DType::bf16 || compute == DType::tf32 ? Layout::channels_last(rank) : Layout::plain();
}

std::unique_ptr<Kernel> library_conv(const KernelRequest& request, const LibraryConvCase& which, Device& device, std::string& why) {
    return LibraryConv(request, which.conv, device, which.transforms).kernel(why);
}

}  // namespace convoy::cuda
