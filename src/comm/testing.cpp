#include "comm/testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "tensor/tensor.h"

namespace convoy::testing_comm {

namespace {

// What the rank at a place puts in: integers in -20..20 (0..40 for bytes), reals in -1..1.
Tensor input(const Check& check, int place, int64_t count) {
    const RandomStream random{check.seed, static_cast<uint32_t>(place), 7};
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) {
        const double u = random.uniform(static_cast<uint64_t>(i));
        const double whole = std::floor(u * 41) - (check.dtype == DType::u8 ? 0 : 20);
        values.push_back(is_floating(check.dtype) ? 2 * u - 1 : whole);
    }
    return Tensor::of<double>({count}, values).to(check.dtype);
}

// How many elements each of `size` places gets; uneven, and every third may get none.
std::vector<int64_t> uneven(int64_t count, int size, uint64_t seed) {
    const RandomStream random{seed, 0, 11};
    std::vector<int64_t> cuts{0, count};
    for (int i = 1; i < size; ++i)
        cuts.push_back(static_cast<int64_t>(random.uniform(static_cast<uint64_t>(i)) * static_cast<double>(count + 1)));
    if (size > 2) cuts[2] = cuts[3 % cuts.size()];  // an empty piece
    std::sort(cuts.begin(), cuts.end());
    std::vector<int64_t> counts;
    for (int i = 0; i < size; ++i) counts.push_back(cuts[static_cast<size_t>(i) + 1] - cuts[static_cast<size_t>(i)]);
    return counts;
}

struct Expected {
    std::vector<double> value, scale;  // scale: the sum of sizes, which rounding is measured by
};

Expected reduced(const Check& check, int size) {
    Expected expected;
    std::vector<Tensor> inputs;
    for (int p = 0; p < size; ++p) inputs.push_back(input(check, p, check.count));
    for (int64_t i = 0; i < check.count; ++i) {
        double value = element(inputs[0], i), scale = std::fabs(value);
        for (int p = 1; p < size; ++p) {
            const double next = element(inputs[static_cast<size_t>(p)], i);
            value = check.op == ReduceOp::Sum ? value + next : check.op == ReduceOp::Max ? std::max(value, next) : std::min(value, next);
            scale += std::fabs(next);
        }
        if (check.dtype == DType::u8) value = std::fmod(value, 256);
        expected.value.push_back(value);
        expected.scale.push_back(scale);
    }
    return expected;
}

double epsilon(const Check& check) {
    if (check.op != ReduceOp::Sum) return 0;
    switch (check.dtype) {
        case DType::f64: return 0x1p-52;
        case DType::f32: return 0x1p-23;
        case DType::bf16: return 0x1p-8;
        default: return 0;
    }
}

void compare(const Check& check, const Tensor& result, const Expected& expected, int64_t first, int size) {
    for (int64_t i = 0; i < result.numel(); ++i) {
        const auto at = static_cast<size_t>(first + i);
        const double bound = epsilon(check) * size * expected.scale[at];
        require(std::fabs(element(result, i) - expected.value[at]) <= bound, "{}: element {} is {}, expected {}", to_string(check),
                first + i, element(result, i), expected.value[at]);
    }
}

void require_same(const Check& check, bool same, const char* where) { require(same, "{}: results differ {}", to_string(check), where); }

// Every rank's bytes against the first one's.
void compare_between_ranks(Communicator& communicator, const Check& check, const Tensor& result) {
    Tensor first = result;
    communicator.broadcast(first.data(), first.numel(), first.dtype(), 0, Algorithm::Tree);
    require_same(check, first == result, "between ranks");
}

Tensor all_reduced(Communicator& communicator, const Check& check) {
    Tensor data = input(check, communicator.place(), check.count);
    communicator.all_reduce(data.data(), check.count, check.dtype, check.op, check.algorithm);
    compare(check, data, reduced(check, communicator.size()), 0, communicator.size());
    compare_between_ranks(communicator, check, data);
    return data;
}

Tensor reduce_scattered(Communicator& communicator, const Check& check) {
    const auto counts = uneven(check.count, communicator.size(), check.seed);
    const auto own = static_cast<size_t>(communicator.place());
    Tensor in = input(check, communicator.place(), check.count), out({counts[own]}, check.dtype);
    const int64_t first = offsets_of(counts)[own];
    communicator.reduce_scatter(in.data(), out.data(), counts, check.dtype, check.op, check.algorithm);
    compare(check, out, reduced(check, communicator.size()), first, communicator.size());
    std::byte* const piece = in.data() + first * size_of(check.dtype);  // once more, the result inside the input
    communicator.reduce_scatter(in.data(), piece, counts, check.dtype, check.op, check.algorithm);
    require_same(check, out.bytes() == 0 || std::memcmp(piece, out.data(), static_cast<size_t>(out.bytes())) == 0, "in place");
    return out;
}

Tensor gathered(Communicator& communicator, const Check& check) {
    const auto counts = uneven(check.count, communicator.size(), check.seed);
    const auto own = static_cast<size_t>(communicator.place());
    const auto offsets = offsets_of(counts);
    Tensor expected({check.count}, check.dtype), out({check.count}, check.dtype), in_place({check.count}, check.dtype);
    const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * size_of(check.dtype)); };
    for (size_t p = 0; p < counts.size(); ++p) {
        const Tensor piece = input(check, static_cast<int>(p), counts[p]);
        if (counts[p] > 0) std::memcpy(expected.data() + bytes(offsets[p]), piece.data(), bytes(counts[p]));
        if (counts[p] > 0 && p == own) std::memcpy(in_place.data() + bytes(offsets[p]), piece.data(), bytes(counts[p]));
    }
    const Tensor in = input(check, communicator.place(), counts[own]);
    communicator.all_gather(in.data(), out.data(), counts, check.dtype, check.algorithm);
    require_same(check, out == expected, "from what was put in");
    communicator.all_gather(in_place.data() + bytes(offsets[own]), in_place.data(), counts, check.dtype, check.algorithm);
    require_same(check, in_place == expected, "in place");
    return out;
}

// What place p sends to place q are elements of p's input.
Tensor exchanged(Communicator& communicator, const Check& check) {
    const int size = communicator.size();
    const auto own = static_cast<size_t>(communicator.place());
    const auto sends_of = [&](int p) { return uneven(check.count, size, check.seed + static_cast<uint64_t>(p)); };
    const auto send_counts = sends_of(communicator.place());
    std::vector<int64_t> receive_counts;
    std::vector<double> expected;
    for (int p = 0; p < size; ++p) {
        const auto theirs = sends_of(p);
        const Tensor piece = input(check, p, check.count);
        receive_counts.push_back(theirs[own]);
        for (int64_t i = 0; i < theirs[own]; ++i) expected.push_back(element(piece, offsets_of(theirs)[own] + i));
    }
    const Tensor in = input(check, communicator.place(), check.count);
    Tensor out({static_cast<int64_t>(expected.size())}, check.dtype);
    communicator.all_to_all(in.data(), send_counts, out.data(), receive_counts, check.dtype, check.algorithm);
    for (int64_t i = 0; i < out.numel(); ++i)
        require_same(check, element(out, i) == expected[static_cast<size_t>(i)], "from what was sent");
    return out;
}

Tensor broadcasted(Communicator& communicator, const Check& check) {
    const int root = static_cast<int>(check.seed % static_cast<uint64_t>(communicator.size()));
    Tensor data = input(check, communicator.place(), check.count);
    communicator.broadcast(data.data(), check.count, check.dtype, root, check.algorithm);
    require_same(check, data == input(check, root, check.count), "from the root's");
    return data;
}

Tensor once(Communicator& communicator, const Check& check) {
    switch (check.kind) {
        case Traffic::AllReduce: return all_reduced(communicator, check);
        case Traffic::ReduceScatter: return reduce_scattered(communicator, check);
        case Traffic::AllGather: return gathered(communicator, check);
        case Traffic::AllToAll: return exchanged(communicator, check);
        case Traffic::Broadcast: return broadcasted(communicator, check);
        default: communicator.barrier(check.algorithm); return Tensor({0}, DType::u8);
    }
}

}  // namespace

std::string to_string(const Check& check) {
    return fmt::format("{} by {} of {} {} ({}, seed {})", name_of(check.kind), name_of(check.algorithm), check.count, name_of(check.dtype),
                       name_of(check.op), check.seed);
}

std::vector<Check> all_checks(int64_t count, uint64_t seed) {
    std::vector<Check> checks;
    for (const Traffic kind : {Traffic::AllReduce, Traffic::ReduceScatter, Traffic::AllGather, Traffic::AllToAll, Traffic::Broadcast})
        for (const Algorithm algorithm : algorithms_of(kind))
            for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32, DType::u8})
                checks.push_back({kind, algorithm, dtype, ReduceOp::Sum, count, seed++});
    for (const Algorithm algorithm : algorithms_of(Traffic::AllReduce))
        for (const ReduceOp op : {ReduceOp::Max, ReduceOp::Min})
            for (const DType dtype : {DType::f32, DType::bf16, DType::u8})
                checks.push_back({Traffic::AllReduce, algorithm, dtype, op, count, seed++});
    for (const Algorithm algorithm : algorithms_of(Traffic::Barrier)) checks.push_back({.kind = Traffic::Barrier, .algorithm = algorithm});
    return checks;
}

void run_check(Communicator& communicator, const Check& check) {
    const Tensor first = once(communicator, check), second = once(communicator, check);
    require_same(check, first == second, "from run to run");
}

std::vector<std::byte> noise(int64_t bytes, uint64_t seed) {
    const RandomStream random{seed, 1, 3};
    std::vector<std::byte> data;
    for (int64_t i = 0; i < bytes; ++i) data.push_back(static_cast<std::byte>(random.bits(static_cast<uint64_t>(i)) & 255));
    return data;
}

}  // namespace convoy::testing_comm
