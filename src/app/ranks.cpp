#include "app/ranks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "app/collective_cache.h"
#include "app/machine.h"
#include "app/parser.h"
#include "base/json.h"
#include "comm/launch.h"
#include "comm/thread_world.h"
#include "exec/share.h"

namespace convoy {

namespace {

struct LinkOptions {
    std::chrono::milliseconds limit;
    DeviceTransport devices = DeviceTransport::Auto;
};

// Ranks of this process: itself, or threads.
class LocalRanks : public Ranks {
  public:
    explicit LocalRanks(const LinkOptions& options) : options_(options) {}

    bool leads() const override { return true; }
    int launched() const override { return 0; }
    std::string share(const std::string& text) override { return text; }
    int on_this_node(int ranks) const override { return ranks; }
    void run(int ranks, const std::function<void(Link*)>& body) override {
        if (ranks == 1) return body(nullptr);
        constexpr int kMost = 1024;
        if (ranks > kMost)
            throw UsageError(
                fmt::format("{} ranks are too many for one process, whose threads they would be; expected at most {}; more "
                            "run as processes of their own, under mpirun",
                            ranks, kMost));
        ThreadWorld world(ranks);
        const CollectiveTable table = known_table(setting_of(world.rank(0)));
        run_ranks(world, [&](Transport& transport) {
            Link link(transport, options_.limit);
            link.set_device_transport(options_.devices);
            link.set_table(table);
            body(&link);
        });
    }

  private:
    LinkOptions options_;
};

// This process is one of several.
class LaunchedRanks : public Ranks {
  public:
    LaunchedRanks(Transport& transport, const LinkOptions& options) : transport_(transport), link_(transport, options.limit) {
        link_.set_device_transport(options.devices);
        const std::string known = leads() ? to_json(known_table(setting_of(transport))).dump() : "";
        link_.set_table(collective_table_from_json(Json::parse(share_text(&link_, 0, known))));
    }

    bool leads() const override { return transport_.rank() == 0; }
    int launched() const override { return transport_.size(); }
    std::string share(const std::string& text) override { return share_text(&link_, 0, text); }
    int on_this_node(int) const override {
        const auto& nodes = transport_.nodes();
        return static_cast<int>(std::count(nodes.begin(), nodes.end(), nodes[static_cast<size_t>(transport_.rank())]));
    }
    void run(int ranks, const std::function<void(Link*)>& body) override {
        CONVOY_CHECK(ranks == transport_.size(), "a body for {} ranks in a run of {}", ranks, transport_.size());
        body(ranks == 1 ? nullptr : &link_);
    }

  private:
    Transport& transport_;
    Link link_;
};

// What goes wrong for all ranks alike is to be heard once, from the first: the others give it time to end them.
[[noreturn]] void end_all(Transport& transport, const std::string& why) {
    if (transport.rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
    transport.fail_all(why);
    throw Error(why);
}

int run_launched(std::unique_ptr<Transport> transport, const LinkOptions& options, const std::function<int(Ranks&)>& command) {
    try {
        int code = 0;
        {
            LaunchedRanks ranks(*transport, options);
            code = command(ranks);
        }
        transport->leave();
        return code;
    } catch (const RunFailed& e) {  // each rank says where it was
        transport->fail_all(e.what());
        throw;
    } catch (const Bug& e) {
        end_all(*transport, fmt::format("internal error, please report it together with the command: {}", e.what()));
    } catch (const std::bad_alloc&) {
        end_all(*transport, "not enough memory; a smaller --batch, or --micro-batches, needs less");
    } catch (const std::exception& e) {
        end_all(*transport, e.what());
    }
}

}  // namespace

void add_plan_options(Parser& parser, RankOptions& options) {
    parser
        .add_option("--plan", options.plan,
                    "How ranks share the work: sample:4, sample:2,height:2, channel:4@x, ... (any of sample, depth, height, width, "
                    "channel, filter), data, "
                    "spatial, hybrid-fc, zero, or a JSON file such as `convoy plan` writes (default: data)")
        ->option_text("SPEC|FILE");
    add_rank_count(parser, options);
}

void add_rank_count(Parser& parser, RankOptions& options) {
    allow_whole(parser.add_option("--ranks", options.ranks, "Ranks, as threads of this process (default: as many as the plan needs, or 1)")
                    ->option_text("R"),
                1);
}

void add_hang_timeout(Parser& parser, RankOptions& options) {
    allow_real(
        parser
            .add_option("--hang-timeout", options.hang_timeout, "Seconds that a rank waits for others before the run ends (default: 300)")
            ->option_text("S"),
        {.low = 0, .high = 1e6, .open = true});
}

void add_between_nodes(Parser& parser, RankOptions& options) {
    auto* between = parser.add_option(
        "--between-nodes", options.between_nodes,
        "Under MPI, messages between machines: mpi, sockets (Convoy's own, over TCP, by the fastest common network or what "
        "$CONVOY_INTERFACE names: eth0, 10.1.0.0/16) or auto (sockets where the only network is Ethernet; default)");
    allow_only(between->option_text("NAME"), {"auto", "mpi", "sockets"});
}

void add_rank_options(Parser& parser, RankOptions& options) {
    add_plan_options(parser, options);
    add_hang_timeout(parser, options);
    auto* transport = parser.add_option("--transport", options.transport,
                                        "Traffic between GPUs: nccl, host (through host memory) or auto (nccl where it can; default)");
    allow_only(transport->option_text("NAME"), {"auto", "nccl", "host"});
    add_between_nodes(parser, options);
    parser
        .add_option("--rendezvous", options.rendezvous,
                    "Without a launcher: a file by which processes that were started one by one, with --ranks and --rank, find each other")
        ->option_text("FILE");
    allow_whole(parser.add_option("--rank", options.rank, "With --rendezvous: which rank this process is, from 0")->option_text("R"), 0);
    parser
        .add_option("--address", options.address,
                    "With --rendezvous, on several machines: where this process listens for the others (default: 127.0.0.1)")
        ->option_text("IP");
}

namespace {

BetweenNodes between_nodes_named(const std::string& name) {
    return name == "mpi" ? BetweenNodes::Mpi : name == "sockets" ? BetweenNodes::Sockets : BetweenNodes::Auto;
}

// All processes find out alike; the first says it, before the others' end makes the launcher end it.
[[noreturn]] void refuse_launch(const std::string& why) {
    if (launched_rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
    throw Error(why);
}

std::unique_ptr<Transport> meet_others(const RankOptions& options, const LinkOptions& link) {
    if (options.rank < 0 || options.ranks < 1)
        throw UsageError("--rendezvous needs --ranks, how many processes there are, and --rank, which of them this is (from 0)");
    if (options.rank >= options.ranks) throw UsageError(fmt::format("--rank says {}, but --ranks only {}", options.rank, options.ranks));
    return make_socket_transport({.file = options.rendezvous,
                                  .rank = options.rank,
                                  .size = options.ranks,
                                  .address = options.address.empty() ? "127.0.0.1" : options.address,
                                  .limit = link.limit});
}

}  // namespace

int run_with_ranks(const RankOptions& options, const std::function<int(Ranks&)>& command) {
    const LinkOptions link{.limit = std::chrono::milliseconds(static_cast<int64_t>(std::ceil(options.hang_timeout * 1000))),
                           .devices = device_transport_named(options.transport)};
    if (options.rank >= 0 && options.rendezvous.empty())
        throw UsageError("--rank needs --rendezvous, the file by which the processes meet");
    if (!options.address.empty() && options.rendezvous.empty())
        throw UsageError("--address needs --rendezvous, the file by which the processes meet");
    if (!options.rendezvous.empty()) return run_launched(meet_others(options, link), link, command);
    if (const auto tasks = tasks_without_mpi())
        refuse_launch(fmt::format(
            "Slurm started {} tasks of this step without telling MPI, so each would be a run of its own: srun needs --mpi=pmix (or "
            "--mpi=pmi2 for MPICH), or --rendezvous and --rank $SLURM_PROCID; runs that have nothing to do with each other go in steps "
            "of one task",
            *tasks));
    if (const auto announced = launched_size()) {
        auto transport = make_mpi_transport({.between_nodes = between_nodes_named(options.between_nodes), .limit = link.limit});
        try {
            require_launched_world(*announced, transport->size());
        } catch (const Error& e) {
            refuse_launch(e.what());
        }
        return run_launched(std::move(transport), link, command);
    }
    LocalRanks ranks(link);
    return command(ranks);
}

PlanChoice choose_plan(const RankOptions& options, const Ranks& ranks) {
    const int launched = ranks.launched();
    if (launched > 0 && options.ranks > 0 && options.ranks != launched)
        throw UsageError(fmt::format("--ranks says {}, but {} process{} started, one for each rank; leave --ranks out", options.ranks,
                                     launched, launched == 1 ? " was" : "es were"));
    return plan_choice(options.plan, launched > 0 ? launched : options.ranks);
}

int threads_for(const CommonOptions& options, const Ranks& ranks, int size) {
    if (options.threads > 0) return options.threads;
    const MachineInfo machine = machine_info();
    // A launcher may have given each process processors of its own; what it may use is then no measure of the machine.
    const double all = machine.quota > 0 ? std::min<double>(machine.cpus, std::ceil(machine.quota)) : machine.cpus;
    const int share = ranks.launched() > 0 ? static_cast<int>(all) / ranks.on_this_node(size) : usable_cores() / size;
    return std::clamp(share, 1, usable_cores());
}

}  // namespace convoy
