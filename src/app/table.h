// Tables and numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

class Table {
  public:
    enum class Align : uint8_t { Left, Right };
    struct Column {
        std::string title;
        Align align = Align::Left;
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    // As many cells as there are columns.
    void add(std::vector<std::string> cells);
    // The titles, a rule, the rows; every line ends with a newline and has no blanks before it.
    std::string text() const;

  private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

// "61,706"
std::string grouped(int64_t number);
// Three digits and a decimal prefix: "1.82 G", "421 k", "17".
std::string short_number(double number);
// The same in bytes: "46.8 MB".
std::string short_bytes(double bytes);
// "0.8 s", "42 s", "3:05 min", "2:13:40 h".
std::string short_time(double seconds);

}  // namespace convoy
