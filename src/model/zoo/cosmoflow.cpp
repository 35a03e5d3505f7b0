// CosmoFlow: four cosmological parameters from a volume of dark matter. Seven 3^3 convolutions, each followed by a 3^3 average pool until
// 2^3 is left of the member's own input width, then three fully connected layers. Trained on squared error. Width 64 is ours, for small
// machines, and so is its member with batch norm: what a power spectrum says is in small differences between filters whose responses are all positive,
// and without it they are learned one after the other, with a long rest after each.
#include <array>

#include "model/zoo/families.h"

namespace convoy {

namespace {

struct Member {
    std::string_view name;
    int pools;
    bool norm = false;
};
constexpr std::array<Member, 5> kMembers{
    {{"cosmoflow64", 4}, {"cosmoflow64_bn", 4, true}, {"cosmoflow128", 5}, {"cosmoflow256", 6}, {"cosmoflow512", 7}}};
constexpr std::array<int64_t, 7> kFilters{16, 32, 64, 128, 256, 256, 256};
constexpr double kSlope = 0.01, kDropout = 0.2;

}  // namespace

Model cosmoflow(const ZooEntry& entry, const ModelOptions& options) {
    const Member& member = member_of(kMembers, entry.name);
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");

    int index = 0;
    const auto next = [&] { return fmt::format("features.{}", index++); };
    for (int i = 0; i < 7; ++i) {
        const int64_t stride = i == 3 ? 2 : 1;
        x = b.conv(next(), x,
                   {.filters = kFilters[static_cast<size_t>(i)],
                    .kernel = {3, 3, 3},
                    .stride = {stride, stride, stride},
                    .pad = {1, 1, 1},
                    .bias = false});
        if (member.norm) x = b.batch_norm(next(), x);
        x = b.unary(next(), x, Unary::LeakyRelu, kSlope);
        if (i < member.pools) x = b.average_pool(next(), x, {.kernel = {3, 3, 3}, .stride = {2, 2, 2}, .pad = {1, 1, 1}});
    }

    x = b.flatten("flatten", x);
    x = b.dropout("head.0", x, kDropout);
    x = b.unary("head.2", b.linear("head.1", x, {.outputs = 2048}), Unary::LeakyRelu, kSlope);
    x = b.dropout("head.3", x, kDropout);
    x = b.unary("head.5", b.linear("head.4", x, {.outputs = 256}), Unary::LeakyRelu, kSlope);
    x = b.dropout("head.6", x, kDropout);
    x = b.linear("head.7", x, {.outputs = options.classes});
    return finish_model(b, entry, options, x, LossKind::SquaredError);
}

}  // namespace convoy
