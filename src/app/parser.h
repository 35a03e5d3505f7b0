// Options and subcommands as the commands declare them. The library that parses (CLI11) is known to parser.cpp and app.cpp alone: its headers hold code, which
// every file that includes them compiles again.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace convoy {

// A handle of an option; several may stand for the same.
class Option {
  public:
    explicit Option(CLI::Option* option) : option_(option) {}

    // Each returns the option itself.
    Option* option_text(const std::string& text);  // what stands for its value in the help
    Option* description(const std::string& text);
    Option* required(bool is = true);
    Option* capture_default_str();  // shows the value that it has now as the default
    Option* delimiter(char c);
    Option* expected(int fewest, int most);
    Option* take_all();  // one value each time that it is given, and all of them count
    // Says what is wrong with a value as written, or nothing.
    Option* check(const std::function<std::string(const std::string&)>& fault);

    size_t count() const;  // times that the user gave it

  private:
    friend class Parser;
    CLI::Option* option_;
    bool may_be_bare_ = false;  // stands without a value too
};

class Parser {
  public:
    explicit Parser(CLI::App& app) : app_(app) {}

    // The value must outlive the parser. Of integers, double, std::string, and vectors of int and std::string.
    template <class T>
    Option* add_option(const std::string& name, T& value, const std::string& help);
    Option* add_flag(const std::string& name, bool& value, const std::string& help);
    Option* get_option(const std::string& name);
    void remove_option(Option* option);
    size_t count(const std::string& name) const;

    Parser* add_subcommand(const std::string& name, const std::string& help);
    void require_subcommand(int fewest, int most);
    void description(const std::string& text);
    void footer(const std::string& text);

    std::string get_name() const;
    bool parsed() const;

  private:
    Option* wrap(CLI::Option* option);

    CLI::App& app_;
    std::deque<Option> options_;  // what was handed out
    std::deque<Parser> commands_;
};

}  // namespace convoy
