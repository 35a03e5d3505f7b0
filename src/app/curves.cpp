#include "app/curves.h"

#include <sstream>

#include "app/plot.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace convoy {

namespace {

constexpr Color kTraining{70, 120, 200}, kTest{222, 110, 40};

void add_point(Series& series, const Json& line, const char* field, double scale = 1) {
    if (line.contains(field) && line[field].is_number())
        series.points.emplace_back(line.at("step").get<double>(), scale * line[field].get<double>());
}

}  // namespace

std::filesystem::path draw_curves(const std::filesystem::path& run_dir) {
    Series loss{"training", kTraining, {}}, test_loss{"test", kTest, {}, true};
    Series accuracy{"training", kTraining, {}}, test_accuracy{"test", kTest, {}, true};
    Series epoch_loss = loss, epoch_accuracy = accuracy;
    std::istringstream lines(read_file(run_dir / "metrics.jsonl"));
    for (std::string text; std::getline(lines, text);) {
        const Json line = Json::parse(text, nullptr, false);
        if (!line.is_object() || !line.contains("step") || !line["step"].is_number() || !line.contains("kind")) continue;
        if (line["kind"] == "step") {
            add_point(loss, line, "loss");
            add_point(accuracy, line, "accuracy", 100);
        } else {
            add_point(epoch_loss, line, "loss");
            add_point(epoch_accuracy, line, "accuracy", 100);
            add_point(test_loss, line, "test_loss");
            add_point(test_accuracy, line, "test_accuracy", 100);
        }
    }
    // A run that is too short for lines of steps still has its epochs.
    if (loss.points.size() < 2) {
        loss = epoch_loss;
        accuracy = epoch_accuracy;
    }
    const auto panel = [](const char* title, Series training, Series test) {
        Panel result{title, {}};
        for (Series* series : {&test, &training})
            if (!series->points.empty()) result.series.push_back(std::move(*series));
        return result;
    };
    std::vector<Panel> panels{panel("loss", std::move(loss), std::move(test_loss))};
    panels[0].logarithmic = true;
    Panel right = panel("accuracy in %", std::move(accuracy), std::move(test_accuracy));
    if (!right.series.empty()) panels.push_back(std::move(right));
    const auto path = run_dir / "curves.png";
    write_png(path, plot(panels, "steps"));
    return path;
}

}  // namespace convoy
