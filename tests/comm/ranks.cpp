// What one rank does under mpirun; mpi_test.py starts several and looks at how the run ends.
//
//     comm_ranks PROGRAM [SECONDS [RANKS_PER_NODE [unreachable]]]
//
// SECONDS: the time limit. RANKS_PER_NODE: 0 for nodes as they are. unreachable: rank 1 has no network, so that sockets are out of the question.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "base/test_count.h"
#include "comm/communicator.h"
#include "comm/launch.h"
#include "comm/testing.h"

namespace convoy {

namespace {

using testing_comm::all_checks;
using testing_comm::run_check;

struct Run {
    Transport& transport;
    std::chrono::milliseconds limit;

    std::vector<Rank> everybody() const {
        std::vector<Rank> group;
        for (Rank r = 0; r < transport.size(); ++r) group.push_back(r);
        return group;
    }
};

// Every collective over all ranks and over disjoint groups (even and odd ranks, backwards), on two lanes at once.
void collectives(const Run& run) {
    Channel activation(run.transport, Lane::Activation, run.limit), gradient(run.transport, Lane::Gradient, run.limit);
    std::vector<Rank> half;
    for (Rank r = run.transport.size() - 1; r >= 0; --r)
        if (r % 2 == run.transport.rank() % 2) half.push_back(r);
    const Communicators all({{&gradient, run.everybody()}, {&gradient, half}, {&activation, half}, {&activation, run.everybody()}});
    const auto sizes = test_count(0, 1) ? std::vector<int64_t>{0, 1, 7, 1000, 20003} : std::vector<int64_t>{0, 1, 515};
    const auto work = [&](Channel& channel, uint64_t seed) {
        for (const int64_t count : sizes) {
            for (const auto& check : all_checks(count, seed)) {
                run_check(all.at(channel, run.everybody()), check);
                run_check(all.at(channel, half), check);
            }
        }
        all.at(channel, run.everybody()).set_segment_bytes(10000);
        for (const auto& check : all_checks(7001, seed))  // in pieces
            if (check.dtype == DType::f64) run_check(all.at(channel, run.everybody()), check);
    };
    std::thread other([&] {
        try {
            work(activation, 1);
        } catch (const std::exception& e) {
            run.transport.fail_all(e.what());
        }
    });
    work(gradient, 100000);
    other.join();
    std::printf("rank %d: every collective is right\n", run.transport.rank());
}

// All ranks do a few all_reduces; before the last one, rank 1 does `instead`.
void all_but_one(const Run& run, const std::function<void()>& instead) {
    Channel channel(run.transport, Lane::Gradient, run.limit);
    Communicator communicator(channel, run.everybody());
    std::vector<float> data(100000, 1.0f);
    for (int i = 0; i < 4; ++i) {
        channel.set_label("layer" + std::to_string(i));
        if (i == 3 && run.transport.rank() == 1) instead();
        communicator.all_reduce(reinterpret_cast<std::byte*>(data.data()), 100000, DType::f32);
    }
    std::printf("rank %d came through\n", run.transport.rank());
}

void missing_transfer(const Run& run) {
    Channel channel(run.transport, Lane::Activation, run.limit);
    channel.set_label("halo");
    std::vector<std::byte> data(8);
    if (run.transport.rank() == 0) channel.receive(1, 0, data);
    std::this_thread::sleep_for(std::chrono::seconds(60));
}

// Rank 1 does `instead` of opening a group.
void all_but_one_open(const Run& run, const std::function<void()>& instead) {
    Channel channel(run.transport, Lane::Gradient, run.limit);
    if (run.transport.rank() == 1) instead();
    Communicator communicator(channel, run.everybody());
    std::printf("rank %d came through\n", run.transport.rank());
}

// Rank 1 does `instead` of ending.
void all_but_one_end(const Run& run, const std::function<void()>& instead) {
    Channel channel(run.transport, Lane::Gradient, run.limit);
    Communicator(channel, run.everybody()).barrier();
    if (run.transport.rank() == 1) instead();
    run.transport.leave();
    if (run.transport.rank() != 1) std::printf("rank %d came through\n", run.transport.rank());  // 1 may, at last
}

// All_reduces for a minute, for what is done to the ranks from outside.
void busy(const Run& run) {
    Channel channel(run.transport, Lane::Gradient, run.limit);
    Communicator communicator(channel, run.everybody());
    channel.set_label("busy");
    std::vector<float> data(100000);
    for (const auto start = Clock::now(); Clock::now() - start < std::chrono::seconds(60);)
        communicator.all_reduce(reinterpret_cast<std::byte*>(data.data()), 100000, DType::f32);
}

const std::map<std::string, std::function<void(const Run&)>>& programs() {
    static const std::map<std::string, std::function<void(const Run&)>> all{
        {"collectives", collectives},
        {"missing", [](const Run& run) { all_but_one(run, [] { std::this_thread::sleep_for(std::chrono::seconds(60)); }); }},
        {"stopped", [](const Run& run) { all_but_one(run, [] { std::raise(SIGSTOP); }); }},
        {"killed", [](const Run& run) { all_but_one(run, [] { std::raise(SIGKILL); }); }},
        {"failing", [](const Run& run) { all_but_one(run, [] { fail("the disk is full"); }); }},
        {"transfer", missing_transfer},
        {"opening", [](const Run& run) { all_but_one_open(run, [] { std::this_thread::sleep_for(std::chrono::seconds(60)); }); }},
        {"opening-stopped", [](const Run& run) { all_but_one_open(run, [] { std::raise(SIGSTOP); }); }},
        {"ending", [](const Run& run) { all_but_one_end(run, [] { std::this_thread::sleep_for(std::chrono::seconds(60)); }); }},
        {"ending-stopped", [](const Run& run) { all_but_one_end(run, [] { std::raise(SIGSTOP); }); }},
        {"busy", busy},
    };
    return all;
}

}  // namespace

}  // namespace convoy

int main(int argc, char** argv) {
    using namespace convoy;
    if (argc < 2 || !programs().count(argv[1]) || !launched_size()) {
        std::fprintf(stderr, "usage: mpirun -n N comm_ranks PROGRAM [SECONDS [RANKS_PER_NODE [unreachable]]]\n");
        return 2;
    }
    const int per_node = argc > 3 ? std::atoi(argv[3]) : 0;
    const bool unreachable = argc > 4;
    if (unreachable && launched_rank() == 1) setenv("CONVOY_INTERFACE", "none", 1);
    const auto limit = std::chrono::milliseconds(static_cast<int64_t>(1000 * (argc > 2 ? std::atof(argv[2]) : 300)));
    // Between pretended nodes messages go by sockets, as they do between real ones.
    const auto transport = make_mpi_transport({.between_nodes = per_node > 0 && !unreachable ? BetweenNodes::Sockets : BetweenNodes::Auto,
                                               .ranks_per_node = per_node,
                                               .limit = limit,
                                               .answer_limit = std::chrono::seconds(1)});
    try {
        require_launched_world(*launched_size(), transport->size());
        programs().at(argv[1])({*transport, limit});
    } catch (const std::exception& e) {
        transport->fail_all(e.what());
    }
    return 0;
}
