#include "app/synthetic.h"

#include "base/random.h"

namespace convoy {

std::map<std::string, Tensor> synthetic_feeds(const Graph& graph, const SyntheticFeedOptions& options) {
    std::map<std::string, Tensor> feeds;
    for (const auto& [name, v] : graph.inputs()) {
        const ValueType& type = graph.value(v).type;
        const RandomStream random{options.seed, static_cast<uint32_t>(options.step), stream_of(name)};
        Tensor tensor(type.shape, type.element == Element::Index ? DType::i32 : DType::f64);
        for (int64_t i = 0; i < tensor.numel(); ++i) {
            const auto at = static_cast<uint64_t>(i);
            if (tensor.dtype() == DType::i32)
                tensor.as<int32_t>()[static_cast<size_t>(i)] =
                    static_cast<int32_t>(random.uniform(at) * static_cast<double>(options.classes));
            else
                tensor.as<double>()[static_cast<size_t>(i)] = random.normal(at);
        }
        if (name == "hyper") tensor = Tensor::of<double>({2}, {options.lr, options.step + 1.0});
        feeds[name] = std::move(tensor);
    }
    return feeds;
}

}  // namespace convoy
