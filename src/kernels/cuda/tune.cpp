#include "kernels/cuda/tune.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "kernels/cuda/engine_cache.h"

namespace convoy::cuda {

namespace {

constexpr size_t kTried = 8;     // engines
constexpr double kPatience = 1;  // seconds after which no other engine is tried: some are compiled when they are first asked for

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

// The engine ready to run, or nothing when it cannot be had after all.
std::shared_ptr<ExecutionPlan> prepared(Device& device, const EngineConfig& engine, const TuneRequest& request, Failures& failures) {
    try {
        auto plan = std::make_shared<ExecutionPlan>(device, engine);
        require(plan->workspace_bytes() <= request.workspace_bytes, "{} wants {} bytes of scratch memory, and there are {}", engine.name,
                plan->workspace_bytes(), request.workspace_bytes);
        plan->bind(request.memory, request.workspace);
        return plan;
    } catch (const Error& e) {
        failures.add(e);
        return nullptr;
    }
}

// The engine that was chosen before.
std::shared_ptr<ExecutionPlan> prepared_again(Device& device, const std::vector<EngineConfig>& engines, const TuneRequest& request,
                                              Failures& failures) {
    if (const auto known = remembered(device, request.problem))
        for (const EngineConfig& engine : engines)
            if (engine.name == *known)
                if (auto plan = prepared(device, engine, request, failures)) return plan;
    return nullptr;
}

// What the library makes of a problem depends on the machine and on its version.
std::string key_of(const Device& device, const std::string& problem) {
    return fmt::format("{}, cuDNN {}: {}", device.name(), cudnnGetVersion(), problem);
}

}  // namespace

double measure_runs(Device& device, const std::function<void()>& start, double hopeless) {
    // Seconds: of a run that is not unlucky; of a first one that loads what it runs, perhaps; of all runs.
    constexpr double kLong = 5e-3, kCold = 0.25, kEnough = 0.1;
    constexpr int kRuns = 4;
    Event begin, end;
    const auto once = [&] {
        begin.record(device);
        start();
        end.record(device);
        return end.seconds_since(begin);
    };
    const double first = once();
    const auto is_hopeless = [&](double seconds, double limit) { return hopeless > 0 && seconds > hopeless && seconds > limit; };
    if (is_hopeless(first, kCold)) return first;
    double best = first, spent = first;
    for (int run = 0; run < kRuns && (run == 0 || spent < kEnough); ++run) {
        const double seconds = once();
        best = run == 0 ? seconds : std::min(best, seconds);
        spent += seconds;
        if (is_hopeless(best, kLong)) break;
    }
    return best;
}

std::optional<std::string> remembered(const Device& device, const std::string& question) {
    return EngineCache::shared().find(key_of(device, question));
}

void remember(const Device& device, const std::string& question, const std::string& answer) {
    EngineCache::shared().store(key_of(device, question), answer);
}

std::shared_ptr<ExecutionPlan> tune(Device& device, const TuneRequest& request, Failures& failures) {
    const auto engines = engine_configs(request.graph, request.policy);
    const bool lacked_before = failures.for_memory;  // for something else
    if (auto plan = prepared_again(device, engines, request, failures)) return plan;
    if (failures.for_memory && !lacked_before) return nullptr;  // not another engine, which gives other bits
    const EngineCache::Turn turn(EngineCache::shared());
    if (auto plan = prepared_again(device, engines, request, failures)) return plan;
    if (engines.empty()) failures.add(Error("the library names no engine that is allowed"));
    std::shared_ptr<ExecutionPlan> best;
    std::string name;
    double fastest = 0;
    const auto start = std::chrono::steady_clock::now();
    size_t tried = 0;
    for (size_t i = 0; i < engines.size() && tried < kTried; ++i) {
        if (best && std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > kPatience) break;
        // With tensor cores what the library falls back to was never the best, and took a minute.
        if (engines[i].fallback && request.policy.tensor_cores && (best || request.hopeless > 0)) break;
        auto plan = prepared(device, engines[i], request, failures);
        if (!plan) continue;
        ++tried;
        double seconds = 0;
        try {
            seconds = measure_runs(
                device, [&] { plan->run(device); }, best ? 2 * fastest : request.hopeless);
        } catch (const Error& e) {
            failures.add(e);
            continue;
        }
        if (best && fastest <= seconds) continue;
        best = std::move(plan);
        name = engines[i].name;
        fastest = seconds;
    }
    // One that is the best of those that are all too slow may be asked for again where it counts.
    const bool too_slow = request.hopeless > 0 && fastest > request.hopeless;
    if (best && !failures.for_memory && !too_slow) remember(device, request.problem, name);
    return best;
}

}  // namespace convoy::cuda
