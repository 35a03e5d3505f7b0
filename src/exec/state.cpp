#include "exec/state.h"

#include "base/error.h"
#include "base/random.h"

namespace convoy {

namespace {

template <class T>
void fill(const StateSpec& spec, uint64_t seed, std::span<T> values) {
    const Initializer& init = spec.initializer;
    const RandomStream random{seed, 0, stream_of(spec.name)};
    for (size_t i = 0; i < values.size(); ++i) {
        switch (init.kind) {
            case Initializer::Kind::Constant: values[i] = static_cast<T>(init.value); break;
            case Initializer::Kind::Uniform: values[i] = static_cast<T>(init.value * (2 * random.uniform(i) - 1)); break;
            case Initializer::Kind::Normal: values[i] = static_cast<T>(init.value * random.normal(i)); break;
            case Initializer::Kind::Values: values[i] = static_cast<T>(init.values[i]); break;
        }
    }
}

}  // namespace

Tensor initial_value(const StateSpec& spec, DType dtype, uint64_t seed) {
    Tensor tensor(spec.shape, dtype);
    if (dtype == DType::f64)
        fill(spec, seed, tensor.as<double>());
    else
        fill(spec, seed, tensor.as<float>());
    return tensor;
}

void State::bind(const Program& program, uint64_t seed) {
    for (const StateBinding& binding : program.states) {
        const std::string& name = binding.spec.name;
        if (const auto known = entries_.find(name); known != entries_.end()) {
            const StateBinding& old = known->second.binding;
            require(old.spec.shape == binding.spec.shape, "state \"{}\" is {} here, but a program wants it as {}", name,
                    to_string(old.spec.shape), to_string(binding.spec.shape));
            CONVOY_CHECK(old.layout == binding.layout && old.desc == binding.desc, "two programs place state \"{}\" differently", name);
            continue;
        }
        entries_.emplace(name, Entry{binding, backend_.allocate(binding.bytes)});
        specs_.push_back(binding.spec);
        backend_.upload(initial_value(binding.spec, binding.desc.dtype, seed), operand(name));
    }
}

const State::Entry& State::entry(const std::string& name) const {
    const auto found = entries_.find(name);
    require(found != entries_.end(), "there is no state tensor \"{}\"", name);
    return found->second;
}

Operand State::operand(const std::string& name) const {
    const Entry& e = entry(name);
    return {e.memory->data(), e.binding.desc, e.binding.layout};
}

Tensor State::read(const std::string& name) const {
    const Entry& e = entry(name);
    Tensor tensor(e.binding.desc.shape, e.binding.desc.dtype);
    backend_.download(operand(name), tensor);
    return tensor;
}

void State::write(const std::string& name, const Tensor& tensor) {
    const Entry& e = entry(name);
    require(tensor.shape() == e.binding.spec.shape, "tensor \"{}\" is {}, but the model expects {}", name, to_string(tensor.shape()),
            to_string(e.binding.spec.shape));
    require(is_floating(tensor.dtype()), "tensor \"{}\" holds {}, expected floating point numbers", name, name_of(tensor.dtype()));
    backend_.upload(tensor.to(e.binding.desc.dtype), operand(name));
}

int64_t State::bytes() const {
    int64_t total = 0;
    for (const auto& [name, e] : entries_) total += e.memory->bytes();
    return total;
}

}  // namespace convoy
