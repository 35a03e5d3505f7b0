#include "kernels/cuda/tune.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "kernels/cuda/engine_cache.h"

namespace convoy::cuda {

namespace {

constexpr size_t kTried = 8;     // engines
constexpr size_t kListed = 24;   // in which a remembered one is looked for
constexpr double kPatience = 2;  // seconds after which no other engine is tried: some are compiled when they are first asked for

class Event {
  public:
    Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
    ~Event() { cudaEventDestroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    void record(const Device& device) { check(cudaEventRecord(event_, device.stream()), "cudaEventRecord"); }
    double seconds_since(const Event& begin) {
        check(cudaEventSynchronize(event_), "cudaEventSynchronize");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin.event_, event_), "cudaEventElapsedTime");
        return static_cast<double>(ms) * 1e-3;
    }

  private:
    cudaEvent_t event_ = nullptr;
};

// The best of a few runs, after one that is not counted.
double measure(Device& device, const ExecutionPlan& plan) {
    Event begin, end;
    double best = 1e30;
    plan.run(device);
    for (int run = 0; run < 4; ++run) {
        begin.record(device);
        plan.run(device);
        end.record(device);
        best = std::min(best, end.seconds_since(begin));
    }
    return best;
}

// The engine ready to run, or nothing when it cannot be had after all.
std::shared_ptr<ExecutionPlan> prepared(Device& device, const EngineConfig& engine, const TuneRequest& request) {
    try {
        auto plan = std::make_shared<ExecutionPlan>(device, engine);
        if (plan->workspace_bytes() > request.workspace_bytes) return nullptr;
        plan->bind(request.memory, request.workspace);
        return plan;
    } catch (const Error&) {
        return nullptr;
    }
}

// What the library makes of a problem depends on the machine and on its version.
std::string key_of(const Device& device, const std::string& problem) {
    return fmt::format("{}, cuDNN {}: {}", device.name(), cudnnGetVersion(), problem);
}

}  // namespace

bool remembered_choice(const Device& device, const std::string& question, const std::function<bool()>& answer) {
    const std::string key = key_of(device, question);
    if (const auto known = EngineCache::shared().find(key)) return *known == "yes";
    const bool yes = answer();
    EngineCache::shared().store(key, yes ? "yes" : "no");
    return yes;
}

std::optional<Tuned> tune(Device& device, const TuneRequest& request) {
    const std::string key = key_of(device, request.problem);
    const auto remembered = EngineCache::shared().find(key);
    const auto engines = engine_configs(request.graph, request.policy, remembered ? kListed : kTried);
    if (remembered)
        for (const EngineConfig& engine : engines) {
            if (engine.name != *remembered) continue;
            if (auto plan = prepared(device, engine, request)) {
                const double seconds = measure(device, *plan);
                return Tuned{std::move(plan), seconds};
            }
        }
    std::optional<Tuned> best;
    std::string name;
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < std::min(engines.size(), kTried); ++i) {
        if (best && std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > kPatience) break;
        auto plan = prepared(device, engines[i], request);
        if (!plan) continue;
        double seconds = 0;
        try {
            seconds = measure(device, *plan);
        } catch (const Error&) {
            continue;
        }
        if (best && best->seconds <= seconds) continue;
        best = Tuned{std::move(plan), seconds};
        name = engines[i].name;
    }
    if (best) EngineCache::shared().store(key, name);
    return best;
}

}  // namespace convoy::cuda
