#include "plan/measured.h"

#include <algorithm>

#include "base/error.h"
#include "base/parse_json.h"

namespace convoy {

namespace {

double bytes_of(const TensorDesc& desc) { return static_cast<double>(numel(desc.shape) * size_of(desc.dtype)); }

// Ops and their attributes without what differs from shape to shape. Many updates in one are one family, however many they are.
std::string ops_text(const Problem& problem) {
    std::string text;
    std::string last;
    for (const ProblemStep& step : problem.steps) {
        std::string op = text_of(step.op);
        if (std::holds_alternative<PackOp>(step.op) || std::holds_alternative<UnpackOp>(step.op) ||
            std::holds_alternative<MergeStatsOp>(step.op) || std::holds_alternative<SliceOp>(step.op))
            op = std::string(name_of(step.op));
        if (op == last) continue;
        text += (text.empty() ? "" : " + ") + op;
        last = op;
    }
    return text;
}

}  // namespace

KernelShape shape_of(const Problem& problem, const std::string& algorithm) {
    KernelShape shape;
    shape.family = ops_text(problem) + ", " + std::string(name_of(problem.compute));
    if (!algorithm.empty()) shape.family += ", " + algorithm;
    shape.work = work_of(problem);
    for (int t = 0; t < problem.inputs + problem.outputs; ++t) shape.bytes += bytes_of(problem.tensors[static_cast<size_t>(t)]);
    // What the first step reads and the last one makes says how large the loops are that the work and the bytes alone do not tell apart.
    const auto sizes = [&](const TensorDesc& desc) {
        const Shape& s = desc.shape;
        shape.sizes.push_back(s.empty() ? 1 : static_cast<double>(s[0]));
        shape.sizes.push_back(s.size() < 2 ? 1 : static_cast<double>(s[1]));
        shape.sizes.push_back(s.size() < 3 ? 1 : static_cast<double>(product(s, 2, s.size())));
    };
    if (problem.inputs > 0) sizes(problem.tensors[0]);
    if (problem.outputs > 0) sizes(problem.tensors[static_cast<size_t>(problem.inputs)]);
    return shape;
}

KernelShape shape_of(const Program& program, const Instruction& instruction) {
    if (const auto* compute = std::get_if<Compute>(&instruction.action)) return shape_of(compute->problem, compute->algorithm);
    CONVOY_CHECK(std::holds_alternative<Copy>(instruction.action), "traffic has no kernel");
    const Slot &from = program.slot(instruction.inputs[0]), &to = program.slot(instruction.outputs[0]);
    KernelShape shape;
    shape.family = "copy, " + from.layout.text() + " to " + to.layout.text();
    shape.bytes = static_cast<double>(from.bytes + to.bytes);
    return shape;
}

Json to_json(const KernelSample& s) {
    return {{"kernel", s.shape.family}, {"work", s.shape.work}, {"bytes", s.shape.bytes}, {"sizes", s.shape.sizes},
            {"threads", s.threads},     {"busy", s.busy},       {"seconds", s.seconds}};
}

KernelSample kernel_sample_from_json(const Json& json) {
    try {
        KernelSample s;
        s.shape = {json.at("kernel"), json.at("work"), json.at("bytes"), json.at("sizes").get<std::vector<double>>()};
        s.threads = json.at("threads");
        s.busy = json.at("busy");
        s.seconds = json.at("seconds");
        require(s.seconds > 0 && s.threads > 0 && s.busy > 0 && s.shape.work >= 0 && s.shape.bytes >= 0,
                "the kernel \"{}\" takes {} s on {} threads with {} ranks busy; all must be more than 0", s.shape.family, s.seconds,
                s.threads, s.busy);
        return s;
    } catch (const Json::exception& e) {
        fail("an entry of \"kernels\" needs \"kernel\", \"work\", \"bytes\", \"sizes\", \"threads\", \"busy\" and \"seconds\": {}",
             fault_of(e));
    }
}

Json to_json(const CollectiveSample& s) {
    return {{"collective", s.kind}, {"algorithm", s.algorithm}, {"link", s.link},
            {"ranks", s.ranks},     {"bytes", s.bytes},         {"seconds", s.seconds}};
}

CollectiveSample collective_sample_from_json(const Json& json) {
    try {
        CollectiveSample s{json.at("collective"), json.at("algorithm"), json.at("link"),
                           json.at("ranks"),      json.at("bytes"),     json.at("seconds")};
        constexpr std::string_view kinds[] = {"all_reduce", "reduce_scatter", "all_gather", "exchange"};
        require(std::find(std::begin(kinds), std::end(kinds), s.kind) != std::end(kinds),
                "the collective \"{}\" is not known; expected all_reduce, reduce_scatter, all_gather or exchange", s.kind);
        require(s.seconds > 0 && s.ranks > 1 && s.bytes > 0, "{} of {} bytes over {} ranks in {} s is no measurement", s.kind, s.bytes,
                s.ranks, s.seconds);
        return s;
    } catch (const Json::exception& e) {
        fail("an entry of \"collectives\" needs \"collective\", \"algorithm\", \"link\", \"ranks\", \"bytes\" and \"seconds\": {}",
             fault_of(e));
    }
}

}  // namespace convoy
