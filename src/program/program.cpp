#include "program/program.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"

namespace convoy {

namespace {

SlotId find(const std::vector<Binding>& list, std::string_view name) {
    const auto at = std::find_if(list.begin(), list.end(), [&](const Binding& b) { return b.name == name; });
    CONVOY_CHECK(at != list.end(), "the program has no input or output \"{}\"", name);
    return at->slot;
}

std::string operand_text(const Program& program, const std::vector<SlotId>& ids) {
    std::vector<std::string> parts;
    for (const SlotId id : ids) {
        const Slot& slot = program.slot(id);
        std::string text = to_string(slot.desc.shape);
        if (!slot.layout.is_plain()) text += ":" + slot.layout.text();
        parts.push_back(slot.state == kNone ? fmt::format("{}@{:x}", text, slot.offset) : fmt::format("{}[{}]", text, slot.name));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string_view name_of(Queue queue) {
    constexpr std::array<std::string_view, kQueues> names{"compute", "activation", "gradient", "late", "host"};
    return names[static_cast<size_t>(queue)];
}

std::string text_of(const Instruction& instruction) {
    if (const auto* compute = std::get_if<Compute>(&instruction.action)) return text_of(compute->problem);
    if (std::holds_alternative<Copy>(instruction.action)) return "copy";
    if (const auto* collective = std::get_if<Collective>(&instruction.action)) {
        constexpr std::array<std::string_view, 3> names{"allreduce", "reduce-scatter", "allgather"};
        const std::string of = collective->members.empty() ? "" : fmt::format(" of {} tensors", collective->members.size());
        return fmt::format("{}{} over {}", names[static_cast<size_t>(collective->kind)], of, collective->group.size());
    }
    const auto& exchange = std::get<Exchange>(instruction.action);
    return fmt::format("exchange, to {} and from {}", exchange.sends.size(), exchange.receives.size());
}

SlotId Program::input(std::string_view name) const { return find(inputs, name); }
SlotId Program::output(std::string_view name) const { return find(outputs, name); }

std::vector<int> carried_computations(const Program& program) {
    const auto at = [&](int i) -> const Instruction& { return program.instructions[static_cast<size_t>(i)]; };
    std::vector<int> carried;
    for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i)
        if (at(i).due != kNone && !is_traffic(at(i).action)) carried.push_back(i);
    std::stable_sort(carried.begin(), carried.end(), [&](int a, int b) { return at(a).due < at(b).due; });
    return carried;
}

Totals totals(const Program& program) {
    Totals sum;
    for (const Instruction& i : program.instructions) {
        sum.work += i.work;
        sum.bytes += i.bytes;
        sum.sent += i.sent;
    }
    return sum;
}

std::string listing(const Program& program) {
    fmt::memory_buffer text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{:>5}  {:<8} {:<10} {:<30} {:>12} {:>10}  {}\n", "#", "phase", "queue", "layer: what", "bytes", "MFLOP",
                   "operands (shape@arena offset, or [state]) -> results");
    for (size_t i = 0; i < program.instructions.size(); ++i) {
        const Instruction& in = program.instructions[i];
        std::string phase(name_of(in.phase));
        if (in.micro_batch > 0) phase += fmt::format("@{}", in.micro_batch);
        fmt::format_to(out, "{:>5}  {:<8} {:<10} {:<30} {:>12} {:>10.3f}  {} -> {}\n", i, phase, name_of(in.queue),
                       fmt::format("{}: {}", in.layer, text_of(in)), in.bytes, in.work / 1e6, operand_text(program, in.inputs),
                       operand_text(program, in.outputs));
        if (in.due != kNone) fmt::format_to(out, "{:>7}carried into the next step, before #{}\n", "", in.due);
    }
    const Totals sum = totals(program);
    fmt::format_to(out,
                   "{} instructions move {:.1f} MB and compute {:.1f} MFLOP; arena {:.1f} MB (without reuse {:.1f} MB), state {:.1f} MB\n",
                   program.instructions.size(), static_cast<double>(sum.bytes) / 1e6, sum.work / 1e6,
                   static_cast<double>(program.memory.arena_bytes) / 1e6, static_cast<double>(program.memory.unshared_bytes) / 1e6,
                   static_cast<double>(program.memory.state_bytes) / 1e6);
    return fmt::to_string(text);
}

Json to_json(const Program& program) {
    const auto operands = [&](const std::vector<SlotId>& ids) {
        Json list = Json::array();
        for (const SlotId id : ids) {
            const Slot& slot = program.slot(id);
            Json entry{{"shape", to_string(slot.desc.shape)}, {"dtype", name_of(slot.desc.dtype)}, {"layout", slot.layout.text()}};
            if (slot.state == kNone)
                entry["offset"] = slot.offset;
            else
                entry["state"] = slot.name;
            list.push_back(std::move(entry));
        }
        return list;
    };
    Json instructions = Json::array();
    for (const Instruction& in : program.instructions) {
        Json entry{{"what", text_of(in)},
                   {"layer", in.layer},
                   {"phase", name_of(in.phase)},
                   {"queue", name_of(in.queue)},
                   {"micro_batch", in.micro_batch},
                   {"waits", in.waits},
                   {"work", in.work},
                   {"bytes", in.bytes},
                   {"sent", in.sent},
                   {"inputs", operands(in.inputs)},
                   {"outputs", operands(in.outputs)}};
        if (in.due != kNone) entry["due"] = in.due;
        if (const auto* compute = std::get_if<Compute>(&in.action)) {
            entry["algorithm"] = compute->algorithm;
            entry["workspace_bytes"] = compute->workspace_bytes;
        }
        instructions.push_back(std::move(entry));
    }
    const Totals sum = totals(program);
    return {{"rank", program.rank},
            {"target", program.target},
            {"dtype", name_of(program.dtype)},
            {"arena_bytes", program.memory.arena_bytes},
            {"state_bytes", program.memory.state_bytes},
            {"unshared_bytes", program.memory.unshared_bytes},
            {"work", sum.work},
            {"bytes", sum.bytes},
            {"instructions", instructions}};
}

}  // namespace convoy
