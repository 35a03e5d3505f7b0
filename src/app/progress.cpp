#include "app/progress.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

#include "app/table.h"
#include "train/plan_choice.h"

namespace convoy {

namespace {

constexpr std::chrono::milliseconds kRedraw{100};  // a bar is drawn at most ten times a second
constexpr std::chrono::seconds kQuiet{10};         // a log is silent for at most so long

int width_of(std::FILE* stream) {
    winsize size{};
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string rate(double samples_per_s) {
    return samples_per_s < 99.95 ? fmt::format("{:.1f} samples/s", samples_per_s)
                                 : fmt::format("{} samples/s", grouped(static_cast<int64_t>(samples_per_s)));
}

std::string waited(double seconds) { return fmt::format("data wait {}", short_time(seconds)); }

// "loss 0.1234", and the accuracy where there is one.
std::string quality(const std::string& of, double loss, const std::optional<double>& accuracy) {
    std::string text = fmt::format("{}loss {:.4f}", of, loss);
    if (accuracy) text += fmt::format(" accuracy {}", percent(*accuracy));
    return text;
}

// How many ranks share the work and how, and which layers could not follow.
std::string plan_text(const TrainStart& start) {
    const std::string& plan = start.config.plan;
    std::string text =
        fmt::format("{} ranks, {}", start.config.ranks, !plan.empty() && plan[0] == '{' ? "by a plan of its own" : "plan " + plan);
    if (!start.unfollowed.empty()) text += "; layers that could not follow it:\n" + text_of(start.unfollowed);
    while (text.back() == '\n') text.pop_back();
    return text;
}

}  // namespace

std::string percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

std::string bar_line(const StepReport& report, int width) {
    const double done = static_cast<double>(report.batch) / static_cast<double>(std::max<int64_t>(1, report.batches));
    std::string head = fmt::format("epoch {}/{}", report.epoch, report.epochs);
    // The most needed first; each is shown if it still fits.
    std::vector<std::string> parts{fmt::format("{:3.0f}%", 100 * done), fmt::format("loss {:.4f}", report.epoch_loss)};
    if (report.epoch_accuracy) parts.push_back("acc " + percent(*report.epoch_accuracy));
    parts.push_back("ETA " + short_time(report.eta_s));
    parts.push_back(rate(report.samples_per_s));
    std::string tail;
    const auto room = [&] { return width - static_cast<int>(head.size() + tail.size()); };
    for (const std::string& part : parts)
        if (static_cast<int>(part.size()) + 2 <= room()) tail += "  " + part;
    constexpr int kShortBar = 9;
    const std::string wait = waited(report.data_wait_s);
    if (static_cast<int>(wait.size()) + 2 + kShortBar <= room()) tail += "  " + wait;
    const int length = std::min(room() - 4, 40);
    if (length >= 5) {
        const int filled = std::clamp(static_cast<int>(std::lround(done * length)), 0, length);
        std::string bar(static_cast<size_t>(length), ' ');
        std::fill_n(bar.begin(), filled, '=');
        if (filled > 0 && filled < length) bar[static_cast<size_t>(filled - 1)] = '>';
        head += " [" + bar + "]";
    }
    return (head + tail).substr(0, static_cast<size_t>(std::max(0, width)));
}

std::string plain_line(const StepReport& report) {
    return fmt::format("epoch {}/{}  batch {}/{}  {}  {}  {}  ETA {}", report.epoch, report.epochs, report.batch, report.batches,
                       quality("", report.epoch_loss, report.epoch_accuracy), rate(report.samples_per_s), waited(report.data_wait_s),
                       short_time(report.eta_s));
}

std::string scores_text(const Scores& scores) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    for (const auto& [name, value] : scores) {
        if (name == "r2") add(fmt::format("R^2 {:.4f}", value));
        if (name == "mae") add(fmt::format("mean absolute error {:.4f}", value));
        if (name == "mean_iou") add(fmt::format("mean IoU {:.4f}", value));
    }
    return text;
}

std::string energy_text(double joules, double watts) {
    const double kilo = joules >= 1e4 ? 1e3 : 1;
    return fmt::format("{:.3g} {} ({:.0f} W)", joules / kilo, kilo > 1 ? "kJ" : "J", watts);
}

std::string epoch_line(const EpochReport& report) {
    std::string line =
        fmt::format("epoch {}/{}  {}", report.epoch, report.epochs, quality("train ", report.train_loss, report.train_accuracy));
    if (report.validation) line += "  " + quality("test ", report.validation->loss, report.validation->accuracy);
    if (const std::string more = report.validation ? scores_text(report.validation->scores) : ""; !more.empty()) line += "  " + more;
    line += fmt::format("  {}  {}  {}", rate(report.samples_per_s), short_time(report.seconds), waited(report.data_wait_s));
    if (report.joules) line += "  " + energy_text(*report.joules, report.watts.value_or(0));
    if (report.skipped > 0) line += fmt::format("  {} pictures skipped", grouped(report.skipped));
    return line;
}

ProgressDisplay::ProgressDisplay(const Output& output)
    : output_(output), terminal_(isatty(fileno(output.stream())) == 1), last_(Clock::now()) {}

ProgressDisplay::~ProgressDisplay() { clear(); }

void ProgressDisplay::on_start(const TrainStart& start) {
    start_ = start;
    const TrainConfig& config = start.config;
    const auto bytes = [](int64_t count) { return short_bytes(static_cast<double>(count)); };
    print(fmt::format("{}: {} parameters; {}: {} samples to train on, {} to test", config.model, grouped(start.parameters),
                      config.data.name, grouped(start.train_samples), grouped(start.test_samples)));
    print(fmt::format("{} steps of {} samples in {} epoch{}; {} at a rate of {:g}, seed {}", grouped(start.total_steps), config.batch,
                      config.epochs, config.epochs == 1 ? "" : "s", name_of(config.optimizer.rule.rule), config.schedule.lr, config.seed));
    print(fmt::format("backend {}, {}, {} thread{}{}; memory {} for steps, {} of state", config.backend, name_of(config.dtype),
                      config.threads, config.threads == 1 ? "" : "s", config.ranks > 1 ? " for each rank" : "", bytes(start.arena_bytes),
                      bytes(start.state_bytes)));
    print(start.data);
    const auto words = [](const std::string& text) { return text.empty() ? "as they are" : text; };
    if (!start.train_transforms.empty() || !start.test_transforms.empty())
        print(fmt::format("samples of {}; training: {}; testing: {}; {} thread{} reading ahead", to_string(config.input),
                          words(start.train_transforms), words(start.test_transforms), start.data_workers,
                          start.data_workers == 1 ? "" : "s"));
    if (config.ranks > 1) print(plan_text(start));
    if (!config.run_dir.empty()) print(fmt::format("everything goes to {}", config.run_dir));
    if (start.first_step > 0 && start.first_step < start.total_steps)
        print(fmt::format("going on after step {}", grouped(start.first_step)));
    if (start.first_step >= start.total_steps)
        print(fmt::format("nothing is left to do: step {} was the last of {} epoch{}; --epochs says how many in all",
                          grouped(start.first_step), config.epochs, config.epochs == 1 ? "" : "s"));
}

void ProgressDisplay::on_step(const StepReport& report) {
    const auto now = Clock::now();
    if (terminal_) {
        if (now - last_ < kRedraw && report.batch < report.batches) return;
        const std::string text = "\r" + bar_line(report, width_of(output_.stream()) - 1) + "\x1b[K";
        output_.write(text);
        drawn_ = true;
    } else {
        const int64_t tenth = 10 * report.batch / std::max<int64_t>(1, report.batches);
        const bool news = tenth != shown_tenth_ && now - last_ >= kRedraw * 10;
        if (!news && now - last_ < kQuiet) return;
        output_.line("{}", plain_line(report));
        shown_tenth_ = tenth;
    }
    last_ = now;
}

void ProgressDisplay::on_epoch(const EpochReport& report) {
    print(epoch_line(report));
    shown_tenth_ = 0;
}

void ProgressDisplay::on_message(const std::string& text) { print(text); }

void ProgressDisplay::print(const std::string& line) {
    clear();
    output_.line("{}", line);
    last_ = Clock::now();
}

void ProgressDisplay::clear() {
    if (drawn_) output_.write("\r\x1b[K");
    drawn_ = false;
}

}  // namespace convoy
