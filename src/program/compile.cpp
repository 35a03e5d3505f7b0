#include "program/compile.h"

#include "program/local_graph.h"

namespace convoy {

Program compile(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options) {
    LocalGraph local = lower(graph, plan, target, options.dtype, options.rank);
    fuse(local, target);
    schedule(local);
    choose(local, target, options.share_state_with);
    Program program = plan_memory(local, options.reuse_memory);
    program.rank = options.rank;
    program.target = target.name();
    program.dtype = options.dtype;
    return program;
}

}  // namespace convoy
