// Learning-rate schedules as plain values: how the rate decays, a linear warm-up in front of it, and scaling with the batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace convoy {

enum class Decay : uint8_t {
    Constant,
    Step,        // times gamma every `every_epochs`
    Milestones,  // times gamma at the start of each of these epochs
    Cosine,      // half a cosine from the peak to `floor`, over what follows the warm-up
};
std::string_view name_of(Decay decay);
// By name; Error names the known ones.
Decay decay_named(std::string_view name);

struct Schedule {
    double lr = 0.01;             // the base rate
    int64_t reference_batch = 0;  // the batch that `lr` is for: the peak is lr * batch / reference_batch; 0: the peak is lr
    Decay decay = Decay::Constant;
    int64_t every_epochs = 30;        // of Step
    double gamma = 0.1;               // of Step and Milestones
    std::vector<int64_t> milestones;  // of Milestones: epochs from 0, rising
    double floor = 0;                 // of Cosine: the rate at the end
    double warmup_epochs = 0;         // linear, from `warmup_from` to the peak; may be a fraction
    int64_t warmup_steps = 0;         // the same in steps, added to the epochs
    double warmup_from = 0;           // the rate before the first step
    bool operator==(const Schedule&) const = default;
};

// The run that a schedule is laid over.
struct ScheduleSpan {
    int64_t batch = 1;
    int64_t steps_per_epoch = 1;
    int64_t total_steps = 1;
};

// Error, naming the field, when a setting makes no sense (a negative rate, no epochs between two steps, ...).
void require_valid(const Schedule& schedule);

// The rate of step `step`, counted from 0. Epochs of Step and Milestones count from the start of the run, warm-up included. During the W steps of
// the warm-up the rate is from + (peak - from) * (step + 1) / W, so the last of them has the peak. Requires a valid schedule.
double lr_at(const Schedule& schedule, int64_t step, const ScheduleSpan& span);

Json to_json(const Schedule& schedule);
// Fields that are missing keep their defaults. Error, which begins with `where`, names the field.
Schedule schedule_from_json(const Json& json, const std::string& where = "schedule");

}  // namespace convoy
