#include "plan/script.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace convoy {

namespace {

void write_costs(Scripts& scripts, Script& script, const CostModel& costs, const std::vector<int>& class_of) {
    const Program& program = *script.program;
    for (const Instruction& in : program.instructions) {
        script.seconds.push_back(0);
        script.traffic.emplace_back();
        script.peers.emplace_back();
        if (!is_traffic(in.action)) {
            const Estimate estimate = costs.compute(program, in);
            script.seconds.back() = estimate.seconds;
            scripts.error += estimate.seconds * estimate.error;
            scripts.computed += estimate.seconds;
            if (estimate.source == CostSource::Roofline) scripts.guessed += estimate.seconds;
            continue;
        }
        script.traffic.back() = costs.traffic(program, in);
        std::set<int> peers;
        const auto add = [&](Rank r) {
            if (class_of[static_cast<size_t>(r)] >= 0) peers.insert(class_of[static_cast<size_t>(r)]);
        };
        if (const auto* collective = std::get_if<Collective>(&in.action)) {
            for (const Rank r : collective->group) add(r);
        } else {
            for (const auto* list : {&std::get<Exchange>(in.action).sends, &std::get<Exchange>(in.action).receives})
                for (const auto& peer : *list) add(peer.rank);
        }
        script.peers.back().assign(peers.begin(), peers.end());
    }
}

// What is carried runs in the next step, as late as it may.
void write_walk(Script& script, int steps) {
    const auto& instructions = script.program->instructions;
    const int count = static_cast<int>(instructions.size());
    const auto due = [&](int i) { return steps == 1 ? kNone : instructions[static_cast<size_t>(i)].due; };
    const std::vector<int> carried = steps == 1 ? std::vector<int>() : carried_computations(*script.program);
    for (int i = 0; i < count; ++i)
        if (is_traffic(instructions[static_cast<size_t>(i)].action) && due(i) == kNone) script.staying.push_back(i);
    for (int step = 0; step < steps; ++step) {
        size_t next = 0;
        const auto walk_carried = [&](int before) {
            for (; step > 0 && next < carried.size() && due(carried[next]) <= before; ++next)
                script.walk.push_back((step - 1) * count + carried[next]);
        };
        for (int i = 0; i < count; ++i) {
            walk_carried(i);
            if (due(i) == kNone || is_traffic(instructions[static_cast<size_t>(i)].action)) script.walk.push_back(step * count + i);
        }
        walk_carried(count);
        script.walk.push_back(kNone);
    }
}

// A rank may stand for others whose neighbours are not its own; whoever has no part in some traffic is not waited for.
void drop_strangers(std::vector<Script>& scripts) {
    std::vector<std::set<int64_t>> orders(scripts.size());
    for (size_t c = 0; c < scripts.size(); ++c)
        for (const Instruction& in : scripts[c].program->instructions)
            if (is_traffic(in.action)) orders[c].insert(in.order);
    for (Script& script : scripts)
        for (size_t i = 0; i < script.peers.size(); ++i)
            std::erase_if(script.peers[i],
                          [&](int peer) { return !orders[static_cast<size_t>(peer)].count(script.program->instructions[i].order); });
}

}  // namespace

int count_ranks(const std::vector<RankClass>& classes) {
    Rank highest = -1;
    for (const RankClass& c : classes)
        for (const Rank r : c.ranks) highest = std::max(highest, r);
    CONVOY_CHECK(highest >= 0, "there is no rank to simulate");
    return highest + 1;
}

Scripts write_scripts(const std::vector<RankClass>& classes, const CostModel& costs, int steps) {
    std::vector<int> class_of(static_cast<size_t>(count_ranks(classes)), -1);
    for (size_t c = 0; c < classes.size(); ++c)
        for (const Rank r : classes[c].ranks) class_of[static_cast<size_t>(r)] = static_cast<int>(c);
    Scripts scripts;
    for (const RankClass& c : classes) {
        for (const Instruction& in : c.program.instructions) scripts.orders = std::max(scripts.orders, in.order + 1);
        Script& script = scripts.list.emplace_back();
        script.program = &c.program;
        write_walk(script, steps);
        write_costs(scripts, script, costs, class_of);
    }
    drop_strangers(scripts.list);
    return scripts;
}

}  // namespace convoy
