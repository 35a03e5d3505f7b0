// The ranks of a command: one, several as threads of this process (--ranks), or one for each process that a launcher (mpirun, srun) or a person (--rendezvous) has
// started.
// A command's body runs once for each rank; only the first rank prints and writes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/options.h"
#include "exec/link.h"
#include "train/plan_choice.h"

namespace convoy {

class Parser;

struct RankOptions {
    int ranks = 0;     // 0: as many as the launcher started, or the plan needs
    std::string plan;  // as plan_choice takes it
    double hang_timeout = 300;
    std::string transport = "auto";      // between GPUs
    std::string between_nodes = "auto";  // under MPI
    std::string rendezvous;              // a file by which processes find each other; empty: no such processes
    int rank = -1;                       // of this process, then
    std::string address;                 // empty: 127.0.0.1
};
void add_rank_count(Parser& parser, RankOptions& options);
void add_hang_timeout(Parser& parser, RankOptions& options);
// --plan and --ranks, for commands that only look at plans.
void add_plan_options(Parser& parser, RankOptions& options);
void add_between_nodes(Parser& parser, RankOptions& options);
// Those, --hang-timeout, --transport, --between-nodes, --rendezvous, --rank and --address.
void add_rank_options(Parser& parser, RankOptions& options);

class Ranks {
  public:
    virtual ~Ranks() = default;

    // Whether this process has the first rank.
    virtual bool leads() const = 0;
    // How many a launcher started; 0: none did, and a command may have as many as it likes.
    virtual int launched() const = 0;
    // The leading process's text, in every process. All call it at the same time.
    virtual std::string share(const std::string& text) = 0;
    // Runs the body once for each of `ranks` ranks and waits for all of them; the link of a single rank is null. When a rank fails all of them end, and
    // the Error names it. A rank that waits for another for longer than `limit` fails.
    virtual void run(int ranks, const std::function<void(Link*)>& body) = 0;

    // Ranks of a run of `ranks` that share this machine.
    virtual int on_this_node(int ranks) const = 0;
};

// Runs a command, once in every process. Under a launcher an error ends all processes; the first rank's is the one that is heard.
int run_with_ranks(const RankOptions& options, const std::function<int(Ranks&)>& command);

// What the options ask for, under a launcher or not. UsageError when the numbers of ranks do not agree.
PlanChoice choose_plan(const RankOptions& options, const Ranks& ranks);

// Threads for each rank: those given, or the machine's divided by the ranks on it; no more than this process may use, and at least 1.
int threads_for(const CommonOptions& options, const Ranks& ranks, int size);

}  // namespace convoy
