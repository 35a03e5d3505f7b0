// What a person sees of a training run: a bar on a terminal, which is redrawn in place, or plain lines now and then.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "app/output.h"
#include "train/observer.h"

namespace convoy {

// One line of at most `width` characters: what is least needed is left out where there is no room.
std::string bar_line(const StepReport& report, int width);
// The same without a bar, for a log.
std::string plain_line(const StepReport& report);
std::string epoch_line(const EpochReport& report);
// "R^2 0.912, mean absolute error 0.1234"; "" where there is nothing to say.
std::string scores_text(const Scores& scores);
// "12.3 kJ (456 W)"
std::string energy_text(double joules, double watts);
// "97.31 %"
std::string percent(double fraction);

class ProgressDisplay : public TrainObserver {
  public:
    // Draws on the output's stream; a bar when that is a terminal.
    explicit ProgressDisplay(const Output& output);
    // Takes the bar away.
    ~ProgressDisplay() override;

    void on_start(const TrainStart& start) override;
    void on_step(const StepReport& report) override;
    void on_epoch(const EpochReport& report) override;
    void on_message(const std::string& text) override;

    const TrainStart& start() const { return start_; }

  private:
    using Clock = std::chrono::steady_clock;
    void print(const std::string& line);
    void clear();

    const Output& output_;
    bool terminal_;
    bool drawn_ = false;       // a bar is on the screen
    Clock::time_point last_;   // when something was last shown
    int64_t shown_tenth_ = 0;  // of the epoch, in plain lines
    TrainStart start_;
};

}  // namespace convoy
