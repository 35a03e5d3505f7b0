#include "app/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace convoy {

namespace {

constexpr int kPanelWidth = 640, kHeight = 440;
constexpr int kLeft = 100, kRight = 24, kTop = 56, kBottom = 64;
constexpr Color kInk{40, 44, 52}, kGrid{226, 228, 232}, kAxis{150, 154, 160};
constexpr double kLine = 2.4;  // width of a curve

struct Range {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    void include(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
};

// What the y axis measures.
double height_of(const Panel& panel, double y) { return panel.logarithmic ? std::log10(y) : y; }

bool shown(const Panel& panel, const std::pair<double, double>& point) {
    return std::isfinite(point.first) && std::isfinite(height_of(panel, point.second));
}

std::string tick_text(double value) {
    if (std::abs(value) >= 1e4) return fmt::format("{:g}k", value / 1e3);
    return fmt::format("{:g}", std::abs(value) < 1e-12 ? 0 : value);
}

void draw_panel(Canvas& canvas, int origin, const Panel& panel, const std::string& x_label) {
    Range xs, ys;
    for (const Series& series : panel.series)
        for (const auto& point : series.points) {
            if (!shown(panel, point)) continue;
            xs.include(point.first);
            ys.include(height_of(panel, point.second));
        }
    if (xs.low > xs.high) xs = ys = {0, 1};
    const double margin = ys.high > ys.low ? 0.05 * (ys.high - ys.low) : std::max(1e-3, 0.05 * std::abs(ys.low));
    ys = {ys.low - margin, ys.high + margin};
    if (xs.high <= xs.low) xs = {xs.low - 1, xs.high + 1};
    const int left = origin + kLeft, right = origin + kPanelWidth - kRight, top = kTop, bottom = kHeight - kBottom;
    const auto x_of = [&](double x) { return left + (x - xs.low) / (xs.high - xs.low) * (right - left); };
    const auto y_of = [&](double y) { return bottom - (height_of(panel, y) - ys.low) / (ys.high - ys.low) * (bottom - top); };

    canvas.text(left, 14, panel.title, kInk);
    const auto y_ticks = panel.logarithmic ? logarithmic_ticks(std::pow(10, ys.low), std::pow(10, ys.high)) : ticks(ys.low, ys.high, 6);
    for (const double tick : y_ticks) {
        canvas.line(left, y_of(tick), right, y_of(tick), 1, kGrid);
        canvas.text(left - 10 - text_width(tick_text(tick)), static_cast<int>(y_of(tick)) - 7, tick_text(tick), kInk);
    }
    for (const double tick : ticks(xs.low, xs.high, 5)) {
        canvas.line(x_of(tick), bottom, x_of(tick), bottom + 5, 1, kAxis);
        canvas.text(static_cast<int>(x_of(tick)) - text_width(tick_text(tick)) / 2, bottom + 12, tick_text(tick), kInk);
    }
    canvas.line(left, bottom, right, bottom, 1, kAxis);
    canvas.line(left, top, left, bottom, 1, kAxis);
    canvas.text((left + right - text_width(x_label)) / 2, bottom + 38, x_label, kInk);

    int legend = right;
    for (const Series& series : panel.series) {
        const std::pair<double, double>* last = nullptr;
        for (const auto& point : series.points) {
            if (!shown(panel, point)) continue;
            if (last != nullptr)
                canvas.line(x_of(last->first), y_of(last->second), x_of(point.first), y_of(point.second), kLine, series.color);
            if (series.marks || series.points.size() == 1)
                canvas.line(x_of(point.first), y_of(point.second), x_of(point.first), y_of(point.second), 8, series.color);
            last = &point;
        }
        legend -= text_width(series.name) + 40;
        canvas.line(legend, 22, legend + 22, 22, kLine, series.color);
        canvas.text(legend + 30, 14, series.name, kInk);
    }
}

}  // namespace

std::vector<double> ticks(double low, double high, int count) {
    const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
    const double lead = rough / power, step = power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
    std::vector<double> result;
    for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) result.push_back(k * step);
    return result;
}

std::vector<double> logarithmic_ticks(double low, double high) {
    const bool many = std::log10(high / low) > 3;
    std::vector<double> result;
    for (double power = std::floor(std::log10(low)); power <= std::log10(high); ++power)
        for (const double lead : {1.0, 2.0, 5.0}) {
            const double tick = lead * std::pow(10, power);
            if (tick >= low && tick <= high && (lead == 1 || !many)) result.push_back(tick);
        }
    return result;
}

Image plot(const std::vector<Panel>& panels, const std::string& x_label) {
    Canvas canvas(kPanelWidth * std::max(1, static_cast<int>(panels.size())), kHeight);
    for (size_t i = 0; i < panels.size(); ++i) draw_panel(canvas, static_cast<int>(i) * kPanelWidth, panels[i], x_label);
    return canvas.take();
}

}  // namespace convoy
