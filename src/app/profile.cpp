// Makes a machine on paper of the one this runs on: `profile` times kernels in the steps of a few models, memory, and traffic between ranks.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include <unistd.h>

#include "app/command.h"
#include "app/machine.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/profile_step.h"
#include "app/ranks.h"
#include "app/table.h"
#include "base/file.h"
#include "base/parse_json.h"
#include "comm/measure.h"
#include "exec/share.h"
#include "exec/traffic.h"
#include "plan/cost.h"
#include "plan/machine.h"
#include "plan/term_fit.h"

namespace convoy {

namespace {

using Clock = std::chrono::steady_clock;

struct ProfileOptions {
    CommonOptions common;
    RankOptions ranks;
    std::vector<std::string> models{"alexnet:8",     "vgg11:2:3x112x112",  "resnet18:8:3x112x112", "resnet50:4:3x112x112",
                                    "cosmoflow64:1", "unet3d:1:1x32x32x32"};
    std::vector<std::string> plans{"sample", "height", "channel@x", "channel@y"};
    std::string output = "machine.json", link = "network";
};

// One line that is drawn over and over, on a terminal.
class Bar {
  public:
    explicit Bar(size_t total) : total_(total), shown_(isatty(STDERR_FILENO) != 0), start_(Clock::now()) {}
    ~Bar() {
        if (shown_) std::fputs("\r\033[K", stderr);
    }
    Bar(const Bar&) = delete;
    Bar& operator=(const Bar&) = delete;
    void next(const std::string& what) {
        constexpr size_t kWidth = 24;
        const size_t filled = kWidth * done_ / std::max<size_t>(1, total_);
        const double spent = std::chrono::duration<double>(Clock::now() - start_).count();
        const std::string left =
            done_ == 0
                ? ""
                : fmt::format(", about {} left", short_time(spent / static_cast<double>(done_) * static_cast<double>(total_ - done_)));
        if (shown_)
            std::fputs(fmt::format("\r\033[K[{}{}] {}/{} {}{}", std::string(filled, '#'), std::string(kWidth - filled, ' '), done_, total_,
                                   what, left)
                           .c_str(),
                       stderr);
        ++done_;
    }

  private:
    size_t total_, done_ = 0;
    bool shown_;
    Clock::time_point start_;
};

// Bytes a second that `threads` threads together read and write in copies that no cache holds.
double copy_bandwidth(int threads) {
    constexpr size_t kBytes = size_t{48} << 20;
    constexpr int kRounds = 6;
    std::atomic<int> ready{0};
    std::vector<double> seconds(static_cast<size_t>(threads));
    std::vector<std::thread> list;
    for (int t = 0; t < threads; ++t)
        list.emplace_back([&, t] {
            std::vector<char> from(kBytes, 1), to(kBytes, 2);
            ++ready;
            while (ready < threads) std::this_thread::yield();
            const auto start = Clock::now();
            for (int i = 0; i < kRounds; ++i) std::memcpy((i % 2 ? from : to).data(), (i % 2 ? to : from).data(), kBytes);
            seconds[static_cast<size_t>(t)] = std::chrono::duration<double>(Clock::now() - start).count();
        });
    for (std::thread& t : list) t.join();
    return 2.0 * kBytes * kRounds * threads / *std::max_element(seconds.begin(), seconds.end());
}

// --- Traffic ---

struct LinkProfile {
    LinkKind link;
    std::vector<CollectiveSample> samples;
};

constexpr int64_t kSizes[] = {256, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};

// Runs work on a thread like the one that carries a step's traffic; seconds of the slowest rank.
double carried(Link& link, const std::function<void()>& work, double budget) {
    std::vector<double> walls;
    double total = 0;
    TrafficQueue queue;
    queue.add(work);
    queue.start();
    const auto once = [&] {
        link.everyone().barrier();
        const auto start = Clock::now();
        queue.post();
        queue.finish();
        double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        link.everyone().all_reduce(reinterpret_cast<std::byte*>(&seconds), 1, DType::f64, ReduceOp::Max);
        return seconds;
    };
    once();
    while (walls.size() < 5 || (total < budget && walls.size() < 300)) {
        walls.push_back(once());
        total += walls.back();
    }
    std::sort(walls.begin(), walls.end());
    return walls[walls.size() / 2];
}

// How fast this thread computes until `done`, in some unit.
double computing_rate(const std::function<bool()>& done) {
    constexpr int kPiece = 10000;
    volatile double kept = 1.5;  // so that it is computed
    double pieces = 0;
    const auto start = Clock::now();
    for (; !done(); ++pieces) {
        double x = kept;
        for (int i = 0; i < kPiece; ++i) x = x * 0.999999 + 2e-6;
        kept = x;
    }
    return pieces / std::chrono::duration<double>(Clock::now() - start).count();
}

// The part of a core that work takes from a computation beside it, for every second that it takes by itself. (By itself it may well wait by asking again and
// again: its own time says little.)
double share_taken(Link& link, const std::function<void()>& work, double seconds) {
    constexpr double kSeconds = 0.4;
    const int count = std::clamp(static_cast<int>(kSeconds / seconds), 3, 1000);
    std::atomic<int> left{count};
    TrafficQueue queue;
    queue.add([&] {
        try {
            for (; left > 0; --left) work();
        } catch (...) {
            left = 0;  // nobody goes on computing beside it
            throw;
        }
    });
    queue.start();
    link.everyone().barrier();
    const auto start = Clock::now();
    const double alone = computing_rate([&] { return std::chrono::duration<double>(Clock::now() - start).count() > kSeconds; });
    link.everyone().barrier();
    const auto from = Clock::now();
    queue.post();
    const double beside = computing_rate([&] { return left == 0; });
    queue.finish();
    const double longer = std::chrono::duration<double>(Clock::now() - from).count() / (count * seconds);
    double share = (1 - beside / alone) * longer / link.size();
    link.everyone().all_reduce(reinterpret_cast<std::byte*>(&share), 1, DType::f64, ReduceOp::Sum);
    return std::clamp(share, 0.0, 1.0);
}

LinkProfile profile_link(Link& link, const std::string& name, double seconds_each) {
    LinkProfile result;
    result.link.name = name;
    result.link.shared = name != "inside";
    const int p = link.size();
    Communicator& group = link.communicator(Lane::Gradient, [&] {
        std::vector<Rank> all(static_cast<size_t>(p));
        for (int r = 0; r < p; ++r) all[static_cast<size_t>(r)] = r;
        return all;
    }());
    Channel& channel = link.channel(Lane::Activation);
    for (const int64_t bytes : kSizes) {
        const std::vector<int64_t> counts = even_counts(bytes / 4, p);
        Buffer whole(bytes + 64), piece(bytes + 64);
        std::memset(whole.data(), 0, static_cast<size_t>(whole.bytes()));
        std::memset(piece.data(), 0, static_cast<size_t>(piece.bytes()));
        const auto add = [&](const char* kind, int ranks, const std::function<void()>& work) {
            const double seconds = std::max(carried(link, work, seconds_each), 1e-9);
            result.samples.push_back({kind, "auto", name, ranks, bytes, seconds});
            return seconds;
        };
        const auto all_reduce = [&] { group.all_reduce(whole.data(), bytes / 4, DType::f32, ReduceOp::Sum, Algorithm::Auto); };
        const double reduce = add("all_reduce", p, all_reduce);
        if (bytes == (4 << 20)) result.link.compute_share = share_taken(link, all_reduce, reduce);
        add("reduce_scatter", p,
            [&] { group.reduce_scatter(whole.data(), piece.data(), counts, DType::f32, ReduceOp::Sum, Algorithm::Auto); });
        add("all_gather", p, [&] { group.all_gather(piece.data(), whole.data(), counts, DType::f32, Algorithm::Auto); });
        // Pairs, each rank with its neighbour; with an odd number the last one is idle.
        const Rank other = link.rank() % 2 == 0 ? link.rank() + 1 : link.rank() - 1;
        const double exchange = add("exchange", 2, [&] {
            if (other >= p) return;
            const Outgoing out{other, 0, {whole.data(), static_cast<size_t>(bytes)}};
            const Incoming in{other, 0, {piece.data(), static_cast<size_t>(bytes)}};
            channel.exchange({&out, 1}, {&in, 1});
        });
        const auto n = static_cast<double>(bytes);
        if (bytes == kSizes[0]) result.link.latency = exchange;
        result.link.bandwidth = n / std::max(1e-9, exchange - result.link.latency);
        const double moving = 2.0 * (p - 1) / p * n / result.link.bandwidth;
        result.link.combine_bandwidth = reduce > moving * 1.05 ? (p - 1.0) / p * n / (reduce - moving) : 0;
    }
    return result;
}

// --- The machine ---

// "sample" for two ranks is "sample:2", "channel@x" is "channel:2@x"; presets are words by themselves.
std::string spec_of(const std::string& plan, int ranks) {
    if (plan == "data" || plan == "spatial" || plan == "hybrid-fc" || plan == "zero") return plan;
    const size_t at = plan.find('@');
    return at == std::string::npos ? fmt::format("{}:{}", plan, ranks) : fmt::format("{}:{}{}", plan.substr(0, at), ranks, plan.substr(at));
}

void set_rate(Machine& machine) {
    double best = 1e6, least = 1;  // the lowest rate that a machine may have
    for (const KernelSample& s : machine.kernels) {
        best = std::max(best, s.shape.work / s.seconds / s.threads);
        least = std::min(least, s.seconds);
    }
    machine.devices[0].rates = {{DType::f32, best, best}};
    machine.devices[0].launch_seconds = machine.kernels.empty() ? 0 : least;
}

Machine machine_here(const std::string& backend) {
    const MachineInfo info = machine_info();
    const int cores = usable_cores();
    Machine machine{.name = info.processor.empty() ? "this machine" : info.processor, .target = backend};
    DeviceKind core{.name = "core", .rates = {{DType::f32, 1e9, 0}}, .memory_bytes = info.memory / std::max(1, cores), .joins = true};
    core.memory_bandwidth = copy_bandwidth(1);
    machine.devices = {core};
    machine.links = {{.name = "inside", .latency = 1e-6, .bandwidth = core.memory_bandwidth}};
    machine.nodes = {{.name = "node", .count = 1, .devices = cores}};
    machine.nodes[0].memory_bandwidth = copy_bandwidth(cores);
    return machine;
}

void replace_link(Machine& machine, const LinkProfile& profile) {
    const auto at =
        std::find_if(machine.links.begin(), machine.links.end(), [&](const LinkKind& l) { return l.name == profile.link.name; });
    const auto index = at - machine.links.begin();
    if (at == machine.links.end())
        machine.links.push_back(profile.link);
    else
        *at = profile.link;
    if (profile.link.name != "inside") machine.network = static_cast<int>(index);
    std::erase_if(machine.collectives, [&](const CollectiveSample& s) { return s.link == profile.link.name; });
    machine.collectives.insert(machine.collectives.end(), profile.samples.begin(), profile.samples.end());
}

void print(const Output& output, const Machine& machine) {
    const DeviceKind& core = machine.devices[0];
    output.line("{}: {} cores, {:.1f} GFLOP/s of f32 on one, {:.1f} GB/s of copies on one and {:.1f} on all", machine.name,
                machine.nodes[0].devices, core.rates[0].measured / 1e9, core.memory_bandwidth / 1e9,
                machine.nodes[0].memory_bandwidth / 1e9);
    for (const LinkKind& l : machine.links)
        output.line("link {}: {:.1f} us, {:.3f} GB/s, {:.0f} % of a core while it moves{}", l.name, l.latency * 1e6, l.bandwidth / 1e9,
                    100 * l.compute_share,
                    l.in_step == InStep{} ? ""
                                          : fmt::format("; in a step {:.1f} times the latency and {:.1f} times as long for a byte",
                                                        l.in_step.latency, l.in_step.transfer));
    output.line("{} kernels, {} collectives", machine.kernels.size(), machine.collectives.size());
}

// How many times as long traffic takes in steps as it should.
InStep slower_in_step(const std::vector<Terms>& costs, const std::vector<double>& seconds) {
    constexpr double kMost = 50;
    const Terms rates = fit_terms(costs, seconds);
    return {.latency = std::clamp(rates[0], 1.0, kMost), .transfer = std::clamp(rates[1], 1.0, kMost)};
}

// Kernels in steps of all models: alone on all cores, alone on one, and one rank on each core under every plan. In several turns, since a machine that others
// use too is faster at one time than at another.
void profile_kernels(const ProfileOptions& options, Machine& machine, Ranks& ranks) {
    const int cores = machine.nodes[0].devices;
    std::vector<StepCase> cases;
    for (const std::string& text : options.models) {
        const StepCase base = step_case(text);
        const auto add = [&](int count, int threads, const std::string& plan) {
            StepCase c = base;
            c.ranks = count;
            c.threads = threads;
            c.plan = plan;
            cases.push_back(c);
        };
        add(1, 1, "");
        if (cores == 1) continue;
        add(1, cores, "");
        for (const std::string& plan : options.plans)
            if (plan != "sample" || base.batch == 0 || base.batch >= cores) add(cores, 1, spec_of(plan, cores));
    }
    constexpr int kTurns = 3;
    Bar bar(kTurns * cases.size());
    const Machine alone = machine;  // its links, as they were measured by themselves
    std::vector<Terms> costs;
    std::vector<double> traffic;
    for (size_t i = 0; i < kTurns * cases.size(); ++i) {
        const StepCase& c = cases[i % cases.size()];
        bar.next(fmt::format("{} {}", c.model, c.plan.empty() ? fmt::format("on {} threads", c.threads) : c.plan));
        const StepProfile measured = profile_step(c, alone, ranks);
        machine.kernels.insert(machine.kernels.end(), measured.kernels.begin(), measured.kernels.end());
        if (measured.traffic <= 0) continue;
        costs.push_back({measured.traffic_cost.latency, measured.traffic_cost.transfer});
        traffic.push_back(measured.traffic);
    }
    if (!traffic.empty()) machine.links[static_cast<size_t>(machine.nodes[0].inside)].in_step = slower_in_step(costs, traffic);
    // What several steps have in common counts once, by the middle one.
    std::stable_sort(machine.kernels.begin(), machine.kernels.end(), [](const KernelSample& a, const KernelSample& b) {
        return std::tie(a.shape.family, a.shape.work, a.shape.bytes, a.shape.sizes, a.threads, a.busy, a.seconds) <
               std::tie(b.shape.family, b.shape.work, b.shape.bytes, b.shape.sizes, b.threads, b.busy, b.seconds);
    });
    KernelTable once;
    for (size_t i = 0; i < machine.kernels.size();) {
        size_t end = i;
        const auto same = [&](const KernelSample& s) {
            return s.shape == machine.kernels[i].shape && s.threads == machine.kernels[i].threads && s.busy == machine.kernels[i].busy;
        };
        while (end < machine.kernels.size() && same(machine.kernels[end])) ++end;
        once.push_back(machine.kernels[(i + end - 1) / 2]);
        i = end;
    }
    machine.kernels = std::move(once);
}

int profile(const ProfileOptions& options) {
    for (const std::string& m : options.models) step_case(m);  // before anything runs
    const double seconds_each = 0.15;
    return run_with_ranks(options.ranks, [&](Ranks& ranks) {
        const Output output(options.common.json, !ranks.leads());
        if (ranks.leads()) expect_files({{"--output", options.output}, {"--json", options.common.json}});
        Machine machine;
        if (ranks.launched() > 0) {
            if (ranks.leads()) {
                require(std::filesystem::exists(options.output),
                        "there is no {} to add the link \"{}\" to; run `convoy profile` on one machine first", options.output,
                        options.link);
                machine = machine_from_json(parse_json(read_file(options.output), options.output));
            }
            ranks.run(ranks.launched(), [&](Link* link) {
                require(link != nullptr, "a link is between ranks: start at least 2");
                const LinkProfile measured = profile_link(*link, options.link, seconds_each);
                if (link->rank() == 0) replace_link(machine, measured);
            });
        } else {
            const std::string backend = options.common.backend.empty() ? "cpu" : options.common.backend;
            machine = machine_here(backend);
            if (machine.nodes[0].devices > 1)
                ranks.run(machine.nodes[0].devices, [&](Link* link) {
                    const LinkProfile measured = profile_link(*link, "inside", seconds_each);
                    if (link->rank() == 0) replace_link(machine, measured);
                });
            profile_kernels(options, machine, ranks);
            set_rate(machine);
        }
        if (!ranks.leads()) return 0;
        validate(machine);
        write_file(options.output, to_json(machine).dump(1) + "\n");
        print(output, machine);
        output.line("kept in {}", options.output);
        output.result({{"machine", options.output}, {"kernels", machine.kernels.size()}, {"collectives", machine.collectives.size()}});
        return 0;
    });
}

}  // namespace

Command add_profile(Parser& program) {
    Parser* const parser = program.add_subcommand("profile", "");
    describe(
        *parser,
        "Measure this machine, for `simulate` and `plan`.\n"
        "Times every instruction of training steps of a few models (whole, and cut between as many ranks as there are cores, all busy at\n"
        "once), copies of memory, and collectives between ranks; some minutes. Started by mpirun it measures the link between the\n"
        "ranks and adds it to the file under the name that --link gives.",
        "  convoy profile --output machine.json\n"
        "  convoy profile --models resnet18:8:3x64x64,lenet5:64 --output small.json\n"
        "  mpirun -n 2 --host a,b convoy profile --link ethernet --output machine.json");
    const auto options = std::make_shared<ProfileOptions>();
    add_json(*parser, options->common);
    parser->add_option("--backend", options->common.backend, "The backend whose kernels are measured (default: cpu)")->option_text("NAME");
    parser->add_option("--models", options->models, "MODEL[:BATCH[:INPUT]]")->delimiter(',')->capture_default_str();
    parser->add_option("--plans", options->plans, "How steps are cut: sample, height, depth, width, channel@x, channel@y, or a preset")
        ->delimiter(',')
        ->capture_default_str();
    parser->add_option("--output", options->output, "The machine file")->capture_default_str();
    parser->add_option("--link", options->link, "Name of the link between launched ranks")->capture_default_str();
    add_hang_timeout(*parser, options->ranks);
    return {parser, [options] { return profile(*options); }};
}

}  // namespace convoy
