#include "app/parser.h"

#include <cstdint>

#include <CLI/App.hpp>

namespace convoy {

Option* Option::option_text(const std::string& text) {
    option_->option_text(text);
    return this;
}

Option* Option::description(const std::string& text) {
    option_->description(text);
    return this;
}

Option* Option::required(bool is) {
    option_->required(is);
    return this;
}

Option* Option::capture_default_str() {
    option_->capture_default_str();
    return this;
}

Option* Option::delimiter(char c) {
    option_->delimiter(c);
    return this;
}

Option* Option::expected(int fewest, int most) {
    may_be_bare_ = fewest == 0;
    option_->expected(fewest, most);
    return this;
}

Option* Option::take_all() {
    option_->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    return this;
}

Option* Option::check(const std::function<std::string(const std::string&)>& fault) {
    option_->check(CLI::Validator([fault](std::string& text) { return fault(text); }, ""));
    return this;
}

size_t Option::count() const { return option_->count(); }

Option* Parser::wrap(CLI::Option* option) { return &options_.emplace_back(option); }

template <class T>
Option* Parser::add_option(const std::string& name, T& value, const std::string& help) {
    Option* const option = wrap(app_.add_option(name, value, help));
    // Nothing, as an unset variable of the shell gives, would pass for an option that was not given.
    option->check([option](const std::string& text) {
        return std::string(text.empty() && !option->may_be_bare_ ? "expected something, found an empty text" : "");
    });
    return option;
}

template Option* Parser::add_option(const std::string&, int&, const std::string&);
template Option* Parser::add_option(const std::string&, int64_t&, const std::string&);
template Option* Parser::add_option(const std::string&, uint64_t&, const std::string&);
template Option* Parser::add_option(const std::string&, double&, const std::string&);
template Option* Parser::add_option(const std::string&, std::string&, const std::string&);
template Option* Parser::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option* Parser::add_option(const std::string&, std::vector<std::string>&, const std::string&);

Option* Parser::add_flag(const std::string& name, bool& value, const std::string& help) { return wrap(app_.add_flag(name, value, help)); }

Option* Parser::get_option(const std::string& name) { return wrap(app_.get_option(name)); }

void Parser::remove_option(Option* option) { app_.remove_option(option->option_); }

size_t Parser::count(const std::string& name) const { return app_.count(name); }

Parser* Parser::add_subcommand(const std::string& name, const std::string& help) {
    return &commands_.emplace_back(*app_.add_subcommand(name, help));
}

void Parser::require_subcommand(int fewest, int most) { app_.require_subcommand(static_cast<size_t>(fewest), static_cast<size_t>(most)); }

void Parser::description(const std::string& text) { app_.description(text); }

void Parser::footer(const std::string& text) { app_.footer(text); }

std::string Parser::get_name() const { return app_.get_name(); }

bool Parser::parsed() const { return app_.parsed(); }

}  // namespace convoy
