// The commands of the program. Each adds itself, with its options, its purpose and examples, to the parser; the one that the user chose is run.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace convoy {

struct Command {
    CLI::App* parser;
    std::function<int()> run;  // returns the exit code; throws Error, or UsageError when the command line is to blame
};

Command add_train(CLI::App& program);
Command add_eval(CLI::App& program);
Command add_check(CLI::App& program);
Command add_tune(CLI::App& program);
Command add_plan(CLI::App& program);  // to whose parser this adds itself:
Command add_plan_show(CLI::App& plan);
Command add_report(CLI::App& program);
Command add_watch(CLI::App& program);
Command add_show(CLI::App& program);
Command add_profile(CLI::App& program);
Command add_simulate(CLI::App& program);
Command add_run(CLI::App& program);
Command add_grad(CLI::App& program);
Command add_export(CLI::App& program);
CLI::App& add_bench(CLI::App& program);  // to which these add themselves:
Command add_bench_step(CLI::App& bench);
Command add_bench_comm(CLI::App& bench);
Command add_bench_conv(CLI::App& bench);
Command add_bench_data(CLI::App& bench);
CLI::App& add_data(CLI::App& program);  // to which these add themselves:
Command add_data_show(CLI::App& data);
Command add_data_make(CLI::App& data);
Command add_info(CLI::App& program);
Command add_version(CLI::App& program);

}  // namespace convoy
