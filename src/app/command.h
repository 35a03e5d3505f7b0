// The commands of the program. Each adds itself, with its options, its purpose and examples, to the parser; the one that the user chose is run.
#pragma once

#include <functional>

namespace convoy {

class Parser;

struct Command {
    Parser* parser;
    std::function<int()> run;  // returns the exit code; throws Error, or UsageError when the command line is to blame
};

Command add_train(Parser& program);
Command add_eval(Parser& program);
Command add_check(Parser& program);
Command add_tune(Parser& program);
Command add_plan(Parser& program);  // to whose parser this adds itself:
Command add_plan_show(Parser& plan);
Command add_report(Parser& program);
Command add_watch(Parser& program);
Command add_show(Parser& program);
Command add_profile(Parser& program);
Command add_simulate(Parser& program);
Command add_run(Parser& program);
Command add_grad(Parser& program);
Command add_export(Parser& program);
Parser& add_bench(Parser& program);  // to which these add themselves:
Command add_bench_step(Parser& bench);
Command add_bench_comm(Parser& bench);
Command add_bench_conv(Parser& bench);
Command add_bench_data(Parser& bench);
Parser& add_data(Parser& program);  // to which these add themselves:
Command add_data_show(Parser& data);
Command add_data_make(Parser& data);
Command add_info(Parser& program);
Command add_version(Parser& program);

}  // namespace convoy
