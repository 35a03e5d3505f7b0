#include "exec/state.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "base/error.h"
#include "base/random_fill.h"
#include "exec/initial.h"
#include "place/transfers.h"
#include "program/placed_graph.h"
#include "tensor/runs.h"

namespace convoy {

namespace {

// Elements from `first` on of the whole tensor.
template <class T>
void fill(const StateSpec& spec, uint64_t seed, int64_t first, std::span<T> values) {
    const Initializer& init = spec.initializer;
    const RandomStream random{seed, 0, stream_of(spec.name)};
    std::array<double, 256> some;
    for (size_t done = 0; done < values.size(); done += some.size()) {
        const size_t count = std::min(some.size(), values.size() - done);
        const auto from = static_cast<size_t>(first) + done;
        const auto put = [&](const auto& number) {
            for (size_t i = 0; i < count; ++i) values[done + i] = static_cast<T>(number(i));
        };
        switch (init.kind) {
            case Initializer::Kind::Constant: put([&](size_t) { return init.value; }); break;
            case Initializer::Kind::Uniform:
                fill_uniform(random, from, {some.data(), count});
                put([&](size_t i) { return init.value * (2 * some[i] - 1); });
                break;
            case Initializer::Kind::Normal:
                fill_normal(random, from, {some.data(), count});
                put([&](size_t i) { return init.value * some[i]; });
                break;
            case Initializer::Kind::Values: put([&](size_t i) { return init.values[from + i]; }); break;
            case Initializer::Kind::File: break;  // read as a whole, below
        }
    }
}

// The file may have changed since the graph was made: nothing is believed about it.
Tensor read_place(const FilePlace& place, const StateSpec& spec) {
    std::ifstream file(place.path, std::ios::binary);
    require(file.good(), "\"{}\" begins with numbers from {}, which cannot be opened", spec.name, place.path);
    Tensor tensor(spec.shape, place.type);
    file.seekg(place.offset);
    file.read(reinterpret_cast<char*>(tensor.data()), tensor.bytes());
    require(file.gcount() == tensor.bytes(), "\"{}\" begins with {} bytes of {} at {}, but {} were there", spec.name, tensor.bytes(),
            place.path, place.offset, file.gcount());
    return tensor;
}

}  // namespace

Tensor initial_value(const StateSpec& spec, DType dtype, uint64_t seed, const Box& box) {
    if (spec.initializer.kind == Initializer::Kind::File) return part_of(read_place(spec.initializer.file, spec), box).to(dtype);
    Tensor tensor(box.shape, dtype);
    const auto fill_all = [&](auto values) {
        for_each_run(spec.shape, box, box.shape, Box::whole(box.shape), [&](int64_t at, int64_t in_box, int64_t length) {
            fill(spec, seed, at, values.subspan(static_cast<size_t>(in_box), static_cast<size_t>(length)));
        });
    };
    if (dtype == DType::f64)
        fill_all(tensor.as<double>());
    else
        fill_all(tensor.as<float>());
    return tensor;
}

Tensor initial_value(const StateSpec& spec, DType dtype, uint64_t seed) { return initial_value(spec, dtype, seed, Box::whole(spec.shape)); }

void State::bind(const Program& program, uint64_t seed) {
    settle();
    std::vector<std::pair<const StateBinding*, bool>> all;
    for (const StateBinding& binding : program.states) all.emplace_back(&binding, true);
    for (const StateBinding& binding : program.elsewhere) all.emplace_back(&binding, false);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first->order < b.first->order; });
    for (const auto& [binding, here] : all) add(*binding, program, here, seed);
}

void State::add(const StateBinding& binding, const Program& program, bool here, uint64_t seed) {
    const std::string& name = binding.spec.name;
    if (const auto known = entries_.find(name); known != entries_.end()) {
        const StateBinding& old = known->second.binding;
        require(old.spec.shape == binding.spec.shape, "state \"{}\" is {} here, but a program wants it as {}", name,
                to_string(old.spec.shape), to_string(binding.spec.shape));
        CONVOY_CHECK(old.layout == binding.layout && old.desc == binding.desc && here == (known->second.memory != nullptr),
                     "two programs place state \"{}\" differently", name);
        return;
    }
    const Grid& grid = program.grids[static_cast<size_t>(binding.distribution.grid)];
    entries_.emplace(name, Entry{binding, grid, here ? backend_.allocate(binding.bytes) : nullptr});
    specs_.push_back(binding.spec);
    if (!here) return;
    backend_.upload(initial_value(binding.spec, binding.desc.dtype, seed, {binding.desc.origin, binding.desc.shape}), operand(name));
}

void State::settle() const {
    if (link_) link_->put_off().settle();
}

const State::Entry& State::entry(const std::string& name) const {
    const auto found = entries_.find(name);
    require(found != entries_.end(), "there is no state tensor \"{}\"", name);
    return found->second;
}

Operand State::operand(const std::string& name) const {
    settle();
    const Entry& e = entry(name);
    CONVOY_CHECK(e.memory, "state \"{}\" lies on other ranks", name);
    return {e.memory->data(), e.binding.desc, e.binding.layout};
}

Tensor State::read(const std::string& name) const {
    settle();
    const Entry& e = entry(name);
    if (!link_ || link_->size() == 1) return read_part(name);
    // Everyone gets all of it, from whoever holds it.
    const Shape& shape = e.binding.spec.shape;
    Holding have{e.grid.ranks, owned_boxes(e.binding.distribution, e.grid, shape).list()}, want;
    for (Rank r = 0; r < link_->size(); ++r) {
        want.ranks.push_back(r);
        want.boxes.push_back(Box::whole(shape));
    }
    const Rank me = link_->rank();
    const Tensor part = e.memory ? read_part(name) : Tensor();
    const DType dtype = e.binding.desc.dtype;
    Tensor whole(shape, dtype);
    std::vector<Tensor> wires;
    std::vector<std::pair<size_t, Box>> arrivals;
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    const auto pieces = transfers(have, want);
    wires.reserve(pieces.size());
    const Box here = e.memory ? Box{e.binding.desc.origin, e.binding.desc.shape} : Box{};
    for (const Piece& piece : pieces) {
        if (piece.from == me && piece.to == me) {
            put_part(whole, piece.box, part_of(part, piece.box.within(here)));
        } else if (piece.from == me) {
            wires.push_back(part_of(part, piece.box.within(here)));
            sends.push_back({piece.to, 0, {wires.back().data(), static_cast<size_t>(wires.back().bytes())}});
        } else if (piece.to == me) {
            wires.emplace_back(piece.box.shape, dtype);
            arrivals.emplace_back(wires.size() - 1, piece.box);
            receives.push_back({piece.from, 0, {wires.back().data(), static_cast<size_t>(wires.back().bytes())}});
        }
    }
    link_->channel(Lane::Service).exchange(sends, receives);
    for (const auto& [wire, box] : arrivals) put_part(whole, box, wires[wire]);
    return whole;
}

Tensor State::read_part(const std::string& name) const {
    const Entry& e = entry(name);
    Tensor tensor(e.binding.desc.shape, e.binding.desc.dtype);
    backend_.download(operand(name), tensor);
    return tensor;
}

void State::write(const std::string& name, const Tensor& tensor) {
    const Entry& e = entry(name);
    require(tensor.shape() == e.binding.spec.shape, "tensor \"{}\" is {}, but the model expects {}", name, to_string(tensor.shape()),
            to_string(e.binding.spec.shape));
    if (!e.memory) return;
    require(is_floating(tensor.dtype()), "tensor \"{}\" holds {}, expected floating point numbers", name, name_of(tensor.dtype()));
    backend_.upload(part_of(tensor, {e.binding.desc.origin, e.binding.desc.shape}).to(e.binding.desc.dtype), operand(name));
}

int64_t State::bytes() const {
    int64_t total = 0;
    for (const auto& [name, e] : entries_) total += e.memory ? e.memory->bytes() : 0;
    return total;
}

}  // namespace convoy
