#include "train/team.h"

#include <algorithm>
#include <limits>

#include "exec/share.h"

namespace convoy {

bool Team::any(bool mine) const {
    if (alone()) return mine;
    int32_t value = mine ? 1 : 0;
    link_->everyone().all_reduce(reinterpret_cast<std::byte*>(&value), 1, DType::i32, ReduceOp::Max);
    return value != 0;
}

int64_t Team::sum(int64_t mine) const {
    if (!alone()) link_->everyone().all_reduce(reinterpret_cast<std::byte*>(&mine), 1, DType::i64);
    return mine;
}

void Team::sum(std::span<double> values) const {
    if (alone()) return;
    link_->everyone().all_reduce(reinterpret_cast<std::byte*>(values.data()), static_cast<int64_t>(values.size()), DType::f64);
}

std::string Team::from_leader(const std::string& text) const { return share_text(link_, 0, text); }

// What a rank has not is less than anything another could have.
Tensor Team::whole(const Tensor* part, const Box& box, const Shape& shape, DType type) const {
    if (alone()) return part->to(type);
    Tensor result(shape, type);
    if (type == DType::f64)
        std::fill_n(result.as<double>().data(), result.numel(), -std::numeric_limits<double>::infinity());
    else
        std::fill_n(result.as<float>().data(), result.numel(), -std::numeric_limits<float>::infinity());
    if (part) put_part(result, box, part->to(type));
    link_->everyone().all_reduce(result.data(), result.numel(), type, ReduceOp::Max);
    return result;
}

std::string Team::earliest(int position, const std::string& text) const {
    if (alone()) return text;
    int64_t key = static_cast<int64_t>(position) * link_->size() + link_->rank();
    link_->everyone().all_reduce(reinterpret_cast<std::byte*>(&key), 1, DType::i64, ReduceOp::Min);
    const int64_t size = link_->size();
    return share_text(link_, static_cast<Rank>((key % size + size) % size), text);
}

}  // namespace convoy
