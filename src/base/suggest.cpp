#include "base/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace convoy {

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
    std::string best;
    size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
    for (const auto& name : known) {
        const size_t distance = edit_distance(word, name);
        if (distance < best_distance) {
            best_distance = distance;
            best = name;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
    const std::string name = nearest(word, known);
    return name.empty() ? "" : fmt::format("; did you mean \"{}\"?", name);
}

}  // namespace convoy
