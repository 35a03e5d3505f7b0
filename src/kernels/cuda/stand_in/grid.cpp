// The threads of a grid as fibers of the calling thread. A fiber runs one device thread after the other until one has to wait; only then are there several.
// Contexts make stacks, jumps change between them: a change of context asks the kernel each time.
#include <csetjmp>

#include <cuda_runtime.h>
#include <ucontext.h>

#include <array>
#include <iterator>
#include <memory>
#include <string>

#include "kernels/cuda/stand_in/stand_in.h"

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace convoy::cuda {

// What a kernel is given at its start.
extern thread_local float4 dynamic_shared[];
thread_local float4 dynamic_shared[(228 << 10) / sizeof(float4)];

}  // namespace convoy::cuda

// The address sanitizer wants to know of changes between stacks; without it these are null.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the sanitizer's names
void __sanitizer_start_switch_fiber(void** saved, const void* bottom, size_t size) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void* saved, const void** bottom, size_t* size) __attribute__((weak));
// NOLINTEND(bugprone-reserved-identifier)
}

namespace stand_in {

namespace {

constexpr unsigned kWarp = 32;
constexpr size_t kStack = 256 << 10;

struct Fiber {
    ucontext_t begin{};
    jmp_buf at{};
    bool begun = false;
    std::unique_ptr<char[]> stack{new char[kStack]};
    unsigned thread = 0;  // that it runs, or that waits
    // What it waits for: a barrier (no mask) or a shuffle.
    bool waits = false;
    unsigned mask = 0;
    int step = 0;
    uint64_t value = 0;
    Spot where{};
};

class Blocks {
  public:
    static Blocks& of_this_thread() {
        static thread_local Blocks blocks;
        return blocks;
    }

    std::string run(const dim3& grid, const dim3& block, const std::function<void()>& kernel, bool backwards) {
        kernel_ = &kernel;
        backwards_ = backwards;
        fault_.clear();
        count_ = block.x * block.y * block.z;
        blockDim = {block.x, block.y, block.z};
        gridDim = {grid.x, grid.y, grid.z};
        const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
        for (uint64_t i = 0; i < blocks && fault_.empty(); ++i) {
            const uint64_t number = backwards ? blocks - 1 - i : i;
            blockIdx = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                        static_cast<unsigned>(number / grid.x / grid.y)};
            run_block();
        }
        return fault_;
    }

    void wait(unsigned mask, uint64_t value, int step, const Spot& where) {
        Fiber& fiber = *running_;
        fiber.waits = true;
        fiber.mask = mask;
        fiber.value = value;
        fiber.step = step;
        fiber.where = where;
        to_scheduler(fiber);
        enter(fiber.thread);
    }
    uint64_t brought() const { return running_->value; }

  private:
    void run_block() {
        begun_ = waiting_count_ = 0;
        waiting_.assign(count_, nullptr);
        while (begun_ < count_) {
            if (idle_.empty()) idle_.push_back(make());
            Fiber* const fiber = idle_.back();
            idle_.pop_back();
            resume(*fiber);
        }
        while (waiting_count_ > 0 && fault_.empty()) {
            const auto released = next_released();
            for (auto it = released.begin(); it != released.end(); ++it) {
                Fiber& fiber = **it;
                fiber.waits = false;
                resume(fiber);
            }
        }
        // After a fault the others stay where they are for ever.
    }

    // Those of the waiting that can go on, in the order of this run, taken out of the list: the warps that shuffle, or else all.
    std::vector<Fiber*> next_released() {
        std::vector<Fiber*> released, warp;
        for (unsigned first = 0; first < count_; first += kWarp) {
            warp.clear();
            for (unsigned thread = first; thread < std::min(first + kWarp, count_); ++thread)
                if (waiting_[thread]) warp.push_back(waiting_[thread]);
            if (std::none_of(warp.begin(), warp.end(), [](const Fiber* f) { return f->mask != 0; })) continue;
            shuffle(warp);
            released.insert(released.end(), warp.begin(), warp.end());
        }
        if (released.empty()) {
            std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(released), [](const Fiber* f) { return f != nullptr; });
            for (const Fiber* fiber : released)
                require(same_place(*fiber, *released[0]), *fiber, "some threads of the block wait at another barrier");
        }
        if (backwards_) std::reverse(released.begin(), released.end());
        for (const Fiber* fiber : released) waiting_[fiber->thread] = nullptr;
        waiting_count_ -= static_cast<unsigned>(released.size());
        return released;
    }

    void shuffle(const std::vector<Fiber*>& lanes) {
        std::array<const Fiber*, kWarp> by_lane{};
        std::array<uint64_t, kWarp> values{};
        for (const Fiber* lane : lanes) {
            require(same_place(*lane, *lanes[0]) && lane->mask == lanes[0]->mask && lane->step == lanes[0]->step, *lane,
                    "the lanes of a warp wait at different places, one of them a shuffle");
            by_lane[lane->thread % kWarp] = lane;
            values[lane->thread % kWarp] = lane->value;
        }
        for (unsigned lane = 0; lane < kWarp; ++lane)
            require(!(lanes[0]->mask >> lane & 1u) || by_lane[lane], *lanes[0], "a shuffle names a lane that does not take part in it");
        for (Fiber* lane : lanes) {
            const unsigned other = (lane->thread % kWarp) ^ static_cast<unsigned>(lane->step);
            require(by_lane[other] != nullptr, *lane, "a shuffle with a lane that does not take part in it");
            lane->value = values[other];
        }
    }

    static bool same_place(const Fiber& a, const Fiber& b) { return a.mask == b.mask && a.where == b.where; }

    void require(bool holds, const Fiber& fiber, const char* what) {
        if (!holds && fault_.empty())
            fault_ = std::string(what) + " (" + fiber.where.file + ":" + std::to_string(fiber.where.line) + ", thread " +
                     std::to_string(fiber.thread) + ")";
    }

    void enter(unsigned thread) const {
        threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
    }

    Fiber* make() {
        Fiber& fiber = *all_.emplace_back(std::make_unique<Fiber>());
        getcontext(&fiber.begin);
        fiber.begin.uc_stack.ss_sp = fiber.stack.get();
        fiber.begin.uc_stack.ss_size = kStack;
        fiber.begin.uc_link = nullptr;
        makecontext(
            &fiber.begin, [] { of_this_thread().work(); }, 0);
        return &fiber;
    }

    // What a fiber does, for ever.
    void work() {
        arrived();
        for (;;) {
            Fiber& fiber = *running_;
            while (begun_ < count_) {
                fiber.thread = backwards_ ? count_ - 1 - begun_ : begun_;
                ++begun_;
                enter(fiber.thread);
                (*kernel_)();
            }
            to_scheduler(fiber);
        }
    }

    void resume(Fiber& fiber) {
        running_ = &fiber;
        void* saved = nullptr;
        if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&saved, fiber.stack.get(), kStack);
        if (_setjmp(scheduler_) == 0) {
            if (fiber.begun) _longjmp(fiber.at, 1);
            fiber.begun = true;
            setcontext(&fiber.begin);
        }
        if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(saved, nullptr, nullptr);
        if (!fiber.waits) return idle_.push_back(&fiber);
        waiting_[fiber.thread] = &fiber;
        ++waiting_count_;
    }

    void arrived() {
        if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(saved_, &bottom_, &size_);
    }
    void to_scheduler(Fiber& fiber) {
        void* saved = nullptr;
        if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&saved, bottom_, size_);
        if (_setjmp(fiber.at) == 0) _longjmp(scheduler_, 1);
        saved_ = saved;
        arrived();
    }

    const std::function<void()>* kernel_ = nullptr;
    bool backwards_ = false;
    unsigned count_ = 0, begun_ = 0, waiting_count_ = 0;
    std::string fault_;
    jmp_buf scheduler_{};
    Fiber* running_ = nullptr;
    std::vector<std::unique_ptr<Fiber>> all_;
    std::vector<Fiber*> idle_;
    std::vector<Fiber*> waiting_;  // by thread
    void* saved_ = nullptr;
    const void* bottom_ = nullptr;  // of the scheduler's stack
    size_t size_ = 0;
};

}  // namespace

std::string run_grid(const dim3& grid, const dim3& block, const std::function<void()>& kernel, bool backwards) {
    return Blocks::of_this_thread().run(grid, block, kernel, backwards);
}

void barrier(const Spot& where) { Blocks::of_this_thread().wait(0, 0, 0, where); }

uint64_t exchange(unsigned mask, uint64_t value, int step, const Spot& where) {
    Blocks& blocks = Blocks::of_this_thread();
    blocks.wait(mask, value, step, where);
    return blocks.brought();
}

}  // namespace stand_in
