#include "app/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"

namespace convoy {

void Table::add(std::vector<std::string> cells) {
    CONVOY_CHECK(cells.size() == columns_.size(), "{} cells in a table of {} columns", cells.size(), columns_.size());
    rows_.push_back(std::move(cells));
}

std::string Table::text() const {
    std::vector<size_t> widths;
    for (const Column& column : columns_) widths.push_back(column.title.size());
    for (const auto& row : rows_)
        for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    const auto line = [&](const auto& cell) {
        std::string text;
        for (size_t c = 0; c < columns_.size(); ++c) {
            if (c > 0) text += "  ";
            text +=
                columns_[c].align == Align::Left ? fmt::format("{:<{}}", cell(c), widths[c]) : fmt::format("{:>{}}", cell(c), widths[c]);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        return text + "\n";
    };
    std::string text = line([&](size_t c) { return columns_[c].title; });
    text += line([&](size_t c) { return std::string(widths[c], '-'); });
    for (const auto& row : rows_) text += line([&](size_t c) { return row[c]; });
    return text;
}

std::string grouped(int64_t number) {
    std::string digits = std::to_string(std::abs(number));
    for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return (number < 0 ? "-" : "") + digits;
}

std::string short_number(double number) {
    constexpr std::array<const char*, 7> prefixes{"", " k", " M", " G", " T", " P", " E"};
    size_t p = 0;
    while (std::abs(number) >= 999.5 && p + 1 < prefixes.size()) {
        number /= 1000;
        ++p;
    }
    const double size = std::abs(number);
    const int decimals = (p == 0 && number == std::floor(number)) || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    return fmt::format("{:.{}f}{}", number, decimals, prefixes[p]);
}

std::string short_bytes(double bytes) {
    std::string text = short_number(bytes);
    if (text.find(' ') == std::string::npos) text += ' ';
    return text + 'B';
}

std::string short_time(double seconds) {
    if (!std::isfinite(seconds)) return "?";
    if (seconds < 10) return fmt::format("{:.1f} s", seconds);
    const auto whole = static_cast<int64_t>(std::llround(seconds));
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
    return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace convoy
