#include "train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "train/fields.h"

namespace convoy {

namespace {

constexpr std::array<std::string_view, 4> kDecays{"constant", "step", "milestones", "cosine"};
constexpr double kPi = 3.14159265358979323846;

double peak_of(const Schedule& schedule, const ScheduleSpan& span) {
    if (schedule.reference_batch == 0) return schedule.lr;
    return schedule.lr * static_cast<double>(span.batch) / static_cast<double>(schedule.reference_batch);
}

int64_t warmup_steps_of(const Schedule& schedule, const ScheduleSpan& span) {
    return schedule.warmup_steps + static_cast<int64_t>(std::llround(schedule.warmup_epochs * static_cast<double>(span.steps_per_epoch)));
}

bool is_rate(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

std::string_view name_of(Decay decay) { return kDecays[static_cast<size_t>(decay)]; }

Decay decay_named(std::string_view name) {
    for (size_t i = 0; i < kDecays.size(); ++i)
        if (kDecays[i] == name) return static_cast<Decay>(i);
    const std::vector<std::string> known(kDecays.begin(), kDecays.end());
    fail("there is no schedule \"{}\"; expected constant, step, milestones or cosine{}", name, did_you_mean(name, known));
}

void require_valid(const Schedule& s) {
    require(is_rate(s.lr), "lr: expected a learning rate of at least 0, found {}", s.lr);
    require(s.reference_batch >= 0, "reference_batch: expected at least 0, found {}", s.reference_batch);
    require(s.decay != Decay::Step || s.every_epochs >= 1, "every_epochs: expected at least 1, found {}", s.every_epochs);
    require(is_rate(s.gamma), "gamma: expected a factor of at least 0, found {}", s.gamma);
    require(std::is_sorted(s.milestones.begin(), s.milestones.end()) && (s.milestones.empty() || s.milestones[0] >= 0),
            "milestones: expected rising epochs from 0");
    require(s.decay != Decay::Milestones || !s.milestones.empty(), "milestones: expected at least one epoch");
    require(is_rate(s.floor), "floor: expected a learning rate of at least 0, found {}", s.floor);
    require(is_rate(s.warmup_epochs), "warmup_epochs: expected at least 0, found {}", s.warmup_epochs);
    require(s.warmup_steps >= 0, "warmup_steps: expected at least 0, found {}", s.warmup_steps);
    require(is_rate(s.warmup_from), "warmup_from: expected a learning rate of at least 0, found {}", s.warmup_from);
}

double lr_at(const Schedule& schedule, int64_t step, const ScheduleSpan& span) {
    const double peak = peak_of(schedule, span);
    const int64_t warmup = warmup_steps_of(schedule, span);
    if (step < warmup)
        return schedule.warmup_from + (peak - schedule.warmup_from) * static_cast<double>(step + 1) / static_cast<double>(warmup);
    const int64_t epoch = step / span.steps_per_epoch;
    switch (schedule.decay) {
        case Decay::Constant: return peak;
        case Decay::Step: return peak * std::pow(schedule.gamma, static_cast<double>(epoch / schedule.every_epochs));
        case Decay::Milestones: {
            const auto passed =
                std::upper_bound(schedule.milestones.begin(), schedule.milestones.end(), epoch) - schedule.milestones.begin();
            return peak * std::pow(schedule.gamma, static_cast<double>(passed));
        }
        case Decay::Cosine: {
            const int64_t length = std::max<int64_t>(span.total_steps - warmup, 1);
            const double done = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(length));
            return schedule.floor + (peak - schedule.floor) * (1 + std::cos(kPi * done)) / 2;
        }
    }
    return peak;
}

Json to_json(const Schedule& s) {
    return {{"lr", s.lr},
            {"reference_batch", s.reference_batch},
            {"decay", name_of(s.decay)},
            {"every_epochs", s.every_epochs},
            {"gamma", s.gamma},
            {"milestones", s.milestones},
            {"floor", s.floor},
            {"warmup_epochs", s.warmup_epochs},
            {"warmup_steps", s.warmup_steps},
            {"warmup_from", s.warmup_from}};
}

Schedule schedule_from_json(const Json& json, const std::string& where) {
    Schedule s;
    Fields fields(json, where);
    fields.read("lr", s.lr);
    fields.read("reference_batch", s.reference_batch);
    fields.read_named("decay", s.decay, decay_named);
    fields.read("every_epochs", s.every_epochs);
    fields.read("gamma", s.gamma);
    fields.read("milestones", s.milestones);
    fields.read("floor", s.floor);
    fields.read("warmup_epochs", s.warmup_epochs);
    fields.read("warmup_steps", s.warmup_steps);
    fields.read("warmup_from", s.warmup_from);
    fields.finish();
    try {
        require_valid(s);
    } catch (const Error& error) {
        fail("{}: {}", where, error.what());
    }
    return s;
}

}  // namespace convoy
