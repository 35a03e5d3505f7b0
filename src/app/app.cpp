#include "app/app.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
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
        CLI::detail::format_help(out, command->get_name(), text.substr(0, text.find('\n')), get_column_width());
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

std::string unknown_command(const CLI::App& program, const std::string& word) {
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
    return fmt::format("unknown command \"{}\"{} The commands are {}; `convoy --help` says more", word,
                       nearest(word, names).empty() ? "." : did_you_mean(word, names), fmt::join(names, ", "));
}

// The parser's own message says neither what was meant nor, when something required is missing as well, what it did not know.
std::string explain(const CLI::App& program, const CLI::ParseError& error) {
    const auto chosen = program.get_subcommands();
    const auto unknown = program.remaining(true);
    if (chosen.empty()) {
        const auto word = std::find_if(unknown.begin(), unknown.end(), [](const std::string& w) { return w.rfind('-', 0) != 0; });
        if (word != unknown.end()) return unknown_command(program, *word);
        if (!unknown.empty()) return fmt::format("unknown option {}; `convoy --help` lists the commands", unknown.front());
        return fmt::format("{}; `convoy --help` lists the commands", error.what());
    }
    const CLI::App& command = *chosen.front();
    const auto flag = std::find_if(unknown.begin(), unknown.end(), [](const std::string& w) { return w.rfind('-', 0) == 0; });
    std::string text = error.what();
    if (flag != unknown.end()) {
        const std::string name = flag->substr(0, flag->find('='));
        const std::string meant = nearest(name, option_names(command));
        text =
            fmt::format("{}: unknown option {}{}", command.get_name(), name, meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
    } else if (!unknown.empty()) {
        text = fmt::format("{}: unexpected argument \"{}\"", command.get_name(), unknown.front());
    }
    return fmt::format("{}{} `convoy {} --help` lists the options", text, text.back() == '?' ? "" : ";", command.get_name());
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
