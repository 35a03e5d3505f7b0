#include "program/memory_profile.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/json.h"

namespace convoy {

namespace {

// A piece of the arena, and the instructions from the first to the last of which it is in use.
struct Life {
    SlotId slot = kNone;  // kNone: the workspace of an instruction
    int64_t offset = 0, bytes = 0;
    int first = 0, last = kNone;  // past the end: of the next step
    MemoryUse use = MemoryUse::Workspace;
};

// When pieces are in use, read off the program: from the instruction that writes a slot to the last that reads it or a view of it. Traffic may still use
// its operands until a computation waits for it, or for later traffic of its queue.
class Lives {
  public:
    explicit Lives(const Program& program) : program_(program), end_(static_cast<int>(program.instructions.size()) - 1) {
        of_slot_.resize(program.slots.size());
        find_ends_of_traffic();
        for (const Binding& input : program.inputs) {
            write(input.slot, 0, MemoryUse::Inputs);
            read(input.slot, end_);
        }
        for (int i = 0; i <= end_; ++i) add(i);
        for (const Binding& output : program.outputs) read(output.slot, end_);
    }

    std::vector<Life> take() {
        for (const Life& life : of_slot_)
            if (life.last != kNone) lives_.push_back(life);
        return std::move(lives_);
    }

  private:
    const Instruction& at(int i) const { return program_.instructions[static_cast<size_t>(i)]; }

    // When an instruction runs, at the latest, or is over.
    int carried_to(int i) const { return end_ + 1 + at(i).due; }

    void find_ends_of_traffic() {
        over_.assign(program_.instructions.size(), end_);
        std::array<int, kQueues> known{};  // of each queue: up to where it is known
        for (int i = 0; i <= end_; ++i) {
            if (at(i).due != kNone) over_[static_cast<size_t>(i)] = carried_to(i);
            if (is_traffic(at(i).action) || at(i).due != kNone) continue;
            for (const int w : at(i).waits)
                for (int& t = known[static_cast<size_t>(at(w).queue)]; t <= w; ++t)
                    if (at(t).queue == at(w).queue) over_[static_cast<size_t>(t)] = i;
        }
    }

    void write(SlotId id, int i, MemoryUse use) {
        const Slot& slot = program_.slot(id);
        if (slot.state != kNone || slot.bytes == 0) return;
        Life& life = of_slot_[static_cast<size_t>(id)];
        if (life.last == kNone) {
            life = {id, slot.offset, slot.bytes, i, i, slot.value == kNone && use != MemoryUse::Inputs ? MemoryUse::Messages : use};
            written_.push_back(id);
        }
        life.last = std::max(life.last, i);
    }

    // Reading a view, which no instruction writes, is reading what was last written there.
    void read(SlotId id, int i) {
        const Slot& slot = program_.slot(id);
        if (slot.state != kNone || slot.bytes == 0) return;
        Life* life = &of_slot_[static_cast<size_t>(id)];
        for (auto w = written_.rbegin(); life->last == kNone && w != written_.rend(); ++w) {
            Life& other = of_slot_[static_cast<size_t>(*w)];
            if (other.offset <= slot.offset && slot.offset + slot.bytes <= other.offset + other.bytes) life = &other;
        }
        if (life->last != kNone) life->last = std::max(life->last, i);
    }

    void add(int i) {
        const Instruction& in = at(i);
        const bool traffic = is_traffic(in.action);
        const int over = traffic || in.due != kNone ? over_[static_cast<size_t>(i)] : i;
        for (const SlotId id : in.inputs) read(id, over);
        for (const SlotId id : in.outputs) {
            write(id, i, in.phase == Phase::Forward ? MemoryUse::Activations : MemoryUse::Gradients);
            read(id, over);
        }
        const auto* compute = std::get_if<Compute>(&in.action);
        if (compute && compute->workspace_bytes > 0)
            lives_.push_back({.offset = compute->workspace_offset, .bytes = compute->workspace_bytes, .first = i, .last = over});
    }

    const Program& program_;
    int end_;
    std::vector<int> over_;  // of traffic: the instruction at which it is surely over
    std::vector<Life> of_slot_;
    std::vector<SlotId> written_;
    std::vector<Life> lives_;
};

// What is in use at an instruction, each byte once: where a result takes the place of an operand, both name it. With the moment between two steps a step is
// `period` long.
std::vector<Life> alive_at(const std::vector<Life>& lives, int i, int period) {
    std::vector<Life> alive;
    for (const Life& life : lives)
        if ((life.first <= i && i <= life.last) || i <= life.last - period) alive.push_back(life);
    std::stable_sort(alive.begin(), alive.end(), [](const Life& a, const Life& b) { return a.offset < b.offset; });
    int64_t covered = 0;
    for (Life& life : alive) {
        const int64_t from = std::max(life.offset, covered), to = std::max(from, life.offset + life.bytes);
        life.bytes = to - from;
        covered = std::max(covered, to);
    }
    return alive;
}

void add_states(const Program& program, MemoryProfile& profile) {
    for (const StateBinding& state : program.states) {
        const StateKind kind = state.spec.kind;
        int64_t& sum = kind == StateKind::Parameter ? profile.parameter_bytes
                       : kind == StateKind::Slot    ? profile.optimizer_bytes
                                                    : profile.buffer_bytes;
        sum += state.bytes;
    }
}

void find_peak(const Program& program, const std::vector<Life>& lives, MemoryProfile& profile) {
    const auto less = [](const auto& a, const auto& b) { return a.total() < b.total(); };
    const auto at = std::max_element(profile.instants.begin(), profile.instants.end(), less) - profile.instants.begin();
    profile.peak = static_cast<size_t>(at);
    for (const Life& life : alive_at(lives, static_cast<int>(at), static_cast<int>(program.instructions.size()) + 1)) {
        const std::string name = life.slot == kNone ? program.instructions[profile.peak].layer : program.slot(life.slot).name;
        if (life.bytes > 0) profile.at_peak.push_back({name, life.use, life.bytes});
    }
    std::stable_sort(profile.at_peak.begin(), profile.at_peak.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

}  // namespace

std::string_view name_of(MemoryUse use) {
    constexpr std::array<std::string_view, kMemoryUses> kNames{"inputs", "activations", "gradients", "messages", "workspace"};
    return kNames[static_cast<size_t>(use)];
}

int64_t MemoryProfile::Instant::total() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

MemoryProfile memory_profile(const Program& program) {
    MemoryProfile profile{.rank = program.rank, .arena_bytes = program.memory.arena_bytes};
    add_states(program, profile);
    const std::vector<Life> lives = Lives(program).take();
    for (size_t i = 0; i < program.instructions.size(); ++i) {
        const Instruction& in = program.instructions[i];
        MemoryProfile::Instant instant{.layer = in.layer, .phase = in.phase};
        for (const Life& life : alive_at(lives, static_cast<int>(i), static_cast<int>(program.instructions.size()) + 1))
            instant.bytes[static_cast<size_t>(life.use)] += life.bytes;
        profile.instants.push_back(std::move(instant));
    }
    if (!profile.instants.empty()) find_peak(program, lives, profile);
    return profile;
}

Json to_json(const MemoryProfile& profile) {
    constexpr size_t kNamed = 12;
    Json layers = Json::array(), phases = Json::array(), bytes = Json::object(), holders = Json::array();
    for (size_t use = 0; use < kMemoryUses; ++use) bytes[std::string(name_of(static_cast<MemoryUse>(use)))] = Json::array();
    for (const auto& instant : profile.instants) {
        layers.push_back(instant.layer);
        phases.push_back(name_of(instant.phase));
        for (size_t use = 0; use < kMemoryUses; ++use)
            bytes[std::string(name_of(static_cast<MemoryUse>(use)))].push_back(instant.bytes[use]);
    }
    for (const auto& holder : profile.at_peak) {
        if (holders.size() == kNamed) break;
        holders.push_back({{"name", holder.name}, {"use", name_of(holder.use)}, {"bytes", holder.bytes}});
    }
    return {{"rank", profile.rank},
            {"arena_bytes", profile.arena_bytes},
            {"state_bytes",
             {{"parameters", profile.parameter_bytes}, {"optimizer", profile.optimizer_bytes}, {"buffers", profile.buffer_bytes}}},
            {"peak", profile.peak},
            {"at_peak", holders},
            {"layers", layers},
            {"phases", phases},
            {"bytes", bytes}};
}

}  // namespace convoy
