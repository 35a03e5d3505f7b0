#include "app/app.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <memory>
#include <new>
#include <sstream>
#include <system_error>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "app/build_info.h"
#include "app/command.h"
#include "app/options.h"
#include "app/parser.h"
#include "base/error.h"
#include "base/suggest.h"

namespace convoy {

namespace {

constexpr int kFailed = 1, kUsage = 2;

// Lists commands by the first line of what they say of themselves.
class BriefFormatter : public CLI::Formatter {
  public:
    std::string make_subcommand(const CLI::App* command) const override {
        const std::string text = command->get_description();
        std::ostringstream out;
        out << std::left << std::setw(static_cast<int>(get_column_width())) << "  " + command->get_name() << text.substr(0, text.find('\n'))
            << '\n';
        return out.str();
    }
};

// One line, whatever the text holds at its end.
int report(std::string text, int code) {
    text.erase(text.find_last_not_of("\n ") + 1);
    std::fflush(stdout);
    std::fprintf(stderr, "convoy: error: %s\n", text.c_str());
    return code;
}

// The long names of all options of the chosen command.
std::vector<std::string> option_names(const CLI::App& parser) {
    std::vector<std::string> names;
    for (const CLI::Option* option : parser.get_options())
        for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

std::vector<std::string> command_names(const CLI::App& of) {
    std::vector<std::string> names;
    for (const CLI::App* command : of.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
    return names;
}

// The command that was chosen, down to the last word that named one: `bench step`.
struct Chosen {
    const CLI::App* command;
    std::string path;  // "bench step"; nothing for the program itself

    std::string prefix() const { return path.empty() ? "" : path + ": "; }
    std::string help() const { return fmt::format("`convoy {}{}--help`", path, path.empty() ? "" : " "); }
};

Chosen chosen_of(const CLI::App& program) {
    Chosen chosen{&program, ""};
    while (!chosen.command->get_subcommands().empty()) {
        chosen.command = chosen.command->get_subcommands().front();
        chosen.path += (chosen.path.empty() ? "" : " ") + chosen.command->get_name();
    }
    return chosen;
}

std::string unknown_command(const Chosen& in, const std::string& word) {
    const auto names = command_names(*in.command);
    return fmt::format("{}unknown command \"{}\"{} The commands are {}; {} says more", in.prefix(), word,
                       nearest(word, names).empty() ? "." : did_you_mean(word, names), fmt::join(names, ", "), in.help());
}

// A word that was taken for an argument but resembles a command: `plan shw resnet18`.
std::string meant_command(const Chosen& in) {
    const auto names = command_names(*in.command);
    for (const CLI::Option* option : in.command->get_options([](const CLI::Option* o) { return o->get_positional(); }))
        for (const std::string& word : option->results())
            if (const std::string name = nearest(word, names); !name.empty())
                return fmt::format("; did you mean \"{} {}\"?", in.path, name);
    return "";
}

bool is_flag(const std::string& word) { return word.rfind('-', 0) == 0; }

// The parser's own message says neither what was meant nor, when something required is missing as well, what it did not know.
std::string explain(const CLI::App& program, const CLI::ParseError& error) {
    const Chosen chosen = chosen_of(program);
    const CLI::App& command = *chosen.command;
    const auto unknown = program.remaining(true);
    if (&command == &program || command.get_require_subcommand_min() > 0) {
        const auto word = std::find_if_not(unknown.begin(), unknown.end(), is_flag);
        if (word != unknown.end()) return unknown_command(chosen, *word);
        if (unknown.empty())
            return fmt::format("{}say which of {}; {} says what each does", chosen.prefix(), fmt::join(command_names(command), ", "),
                               chosen.help());
    }
    const auto flag = std::find_if(unknown.begin(), unknown.end(), is_flag);
    std::string text = error.what();
    if (flag != unknown.end()) {
        const std::string name = flag->substr(0, flag->find('='));
        const std::string meant = nearest(name, option_names(command));
        text = fmt::format("{}unknown option {}{}", chosen.prefix(), name, meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
    } else if (!unknown.empty()) {
        text = fmt::format("{}unexpected argument \"{}\"{}", chosen.prefix(), unknown.front(), meant_command(chosen));
    }
    return fmt::format("{}{} {} lists the options", text, text.back() == '?' ? "" : ";", chosen.help());
}

int run_command(const std::vector<Command>& commands) {
    try {
        for (const Command& command : commands)
            if (command.parser->parsed()) return command.run();
        return kUsage;
    } catch (const UsageError& e) {
        return report(e.what(), kUsage);
    } catch (const Error& e) {
        return report(e.what(), kFailed);
    } catch (const Bug& e) {
        return report(fmt::format("internal error, please report it together with the command: {}", e.what()), kFailed);
    } catch (const std::bad_alloc&) {
        return report("not enough memory; a smaller --batch, or --micro-batches, needs less", kFailed);
    } catch (const std::filesystem::filesystem_error& e) {
        return report(fmt::format("{}: {}", e.path1().string(), e.code().message()), kFailed);
    } catch (const std::system_error& e) {
        return report(fmt::format("the system refuses: {}", e.what()), kFailed);
    } catch (const std::exception& e) {
        return report(fmt::format("internal error, please report it together with the command: {}", e.what()), kFailed);
    }
}

}  // namespace

int run_app(int argc, const char* const* argv) {
    CLI::App program("Convoy trains convolutional networks in parallel.\n");  // named as it was called
    program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    program.formatter(std::make_shared<BriefFormatter>());
    program.set_version_flag("--version", "convoy " + build_info().version, "Print the version and exit");
    program.require_subcommand(0, 1);
    program.footer(
        "`convoy COMMAND --help` says what a command does, with examples. To begin:\n"
        "  convoy train lenet5 --data mnist\n"
        "  convoy show resnet18 --batch 8");
    Parser parser(program);
    std::vector<Command> commands{add_train(parser), add_eval(parser)};
    const Command plan = add_plan(parser);
    commands.insert(commands.end(),
                    {add_plan_show(*plan.parser), plan, add_tune(parser), add_simulate(parser), add_profile(parser), add_check(parser),
                     add_show(parser), add_run(parser), add_grad(parser), add_report(parser), add_watch(parser), add_export(parser)});
    Parser& bench = add_bench(parser);
    Parser& data = add_data(parser);
    commands.insert(commands.end(), {add_bench_step(bench), add_bench_comm(bench), add_bench_conv(bench), add_bench_data(bench),
                                     add_data_show(data), add_data_make(data), add_info(parser), add_version(parser)});
    try {
        program.parse(argc, argv);
        if (!program.get_subcommands().empty()) return run_command(commands);
        std::fputs(program.help().c_str(), stdout);
        return 0;
    } catch (const CLI::Success& e) {
        return program.exit(e);
    } catch (const CLI::ParseError& e) {
        return report(explain(program, e), kUsage);
    } catch (const std::exception& e) {
        return report(fmt::format("internal error, please report it together with the command: {}", e.what()), kFailed);
    }
}

}  // namespace convoy
