#include "tune/race.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/json.h"
#include "base/random.h"
#include "exec/share.h"

namespace convoy {

namespace {

class Runner {
  public:
    Runner(const Graph& graph, const SessionOptions& options) : session_(options), executor_(session_.load(graph)) {
        for (const auto& [name, slot] : executor_->program().inputs) {
            Tensor tensor = executor_->tensor_for(slot);
            if (name == "hyper") {
                tensor = Tensor::of<double>({2}, {0, 1}).to(tensor.dtype());
            } else if (is_floating(tensor.dtype())) {
                Tensor wide(tensor.shape(), DType::f32);
                const RandomStream random{.seed = 1, .stream = stream_of(name)};
                constexpr size_t kDistinct = 100'003;
                const auto values = wide.as<float>();
                for (size_t i = 0; i < values.size(); ++i)
                    values[i] = i < kDistinct ? static_cast<float>(random.normal(i)) : values[i - kDistinct];
                tensor = wide.to(tensor.dtype());
            }
            executor_->set_input(slot, tensor);
        }
    }

    double step() {
        const auto start = std::chrono::steady_clock::now();
        executor_->run({.seed = 1});
        session_.state().settle();  // or the other would have to
        times_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        return times_.back();
    }
    void forget() { times_.clear(); }

    // Other work on the machine makes some steps slower and none faster.
    double seconds() const {
        std::vector<double> sorted = times_;
        std::sort(sorted.begin(), sorted.end());
        return sorted[(sorted.size() - 1) / 4];
    }

  private:
    Session session_;
    std::unique_ptr<Executor> executor_;
    std::vector<double> times_;
};

// Whether the device of every rank has room for this program beside what is there now.
bool fits(const Graph& graph, const SessionOptions& options) {
    Session session(options);
    if (session.backend().on_host()) return true;
    const bool here = session.has_room_for(graph);
    bool everywhere = here;
    for (Rank r = 0; options.link && r < options.link->size(); ++r)
        everywhere = share_text(options.link, r, here ? "fits" : "") == "fits" && everywhere;
    return everywhere;
}

// The same number on all ranks, from what the first one measured.
int rounds_for(Link* link, double seconds, double each) {
    constexpr double kFewest = 3, kMost = 200;
    return std::stoi(share_text(link, 0, std::to_string(static_cast<int>(std::clamp(seconds / each, kFewest, kMost)))));
}

Verdict agreed(Link* link, double untuned, double tuned) {
    const Json words = Json::parse(share_text(link, 0, Json{{"untuned", untuned}, {"tuned", tuned}}.dump()));
    return {words["untuned"].get<double>(), words["tuned"].get<double>()};
}

// A device that has room for one program only runs one after the other.
double alone(const Graph& graph, const SessionOptions& options, double seconds) {
    Runner runner(graph, options);
    runner.step();
    const int rounds = rounds_for(options.link, seconds / 2, runner.step());
    runner.forget();
    for (int i = 0; i < rounds; ++i) runner.step();
    return runner.seconds();
}

}  // namespace

Verdict race(const Graph& graph, const SessionOptions& untuned, const SessionOptions& tuned, double seconds) {
    auto first_runner = std::make_unique<Runner>(graph, untuned);
    if (!fits(graph, tuned)) {
        first_runner.reset();
        constexpr double kNever = 1e300;  // JSON has no infinity
        const double before = alone(graph, untuned, seconds), after = fits(graph, tuned) ? alone(graph, tuned, seconds) : kNever;
        return agreed(untuned.link, before, after);
    }
    Runner &a = *first_runner, b(graph, tuned);
    a.step();
    b.step();
    const double both = a.step() + b.step();
    // A close result may be the machine's noise.
    constexpr int kHeats = 3;
    constexpr double kClose = 0.1;
    const int rounds = rounds_for(untuned.link, seconds, both);
    a.forget();
    b.forget();
    Verdict verdict{};
    for (int heat = 0; heat < kHeats; ++heat) {
        for (int i = rounds; i > 0; --i) {
            // Whoever comes second finds caches as the other left them, so they change places.
            Runner &first = i % 2 == 0 ? a : b, &second = i % 2 == 0 ? b : a;
            first.step();
            second.step();
        }
        verdict = agreed(untuned.link, a.seconds(), b.seconds());
        if (std::abs(verdict.tuned_seconds - verdict.untuned_seconds) > kClose * verdict.untuned_seconds) break;
    }
    return verdict;
}

}  // namespace convoy
