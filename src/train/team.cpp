#include "train/team.h"

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

std::string Team::from_leader(const std::string& text) const { return share_text(link_, 0, text); }

std::string Team::earliest(int position, const std::string& text) const {
    if (alone()) return text;
    int64_t key = static_cast<int64_t>(position) * link_->size() + link_->rank();
    link_->everyone().all_reduce(reinterpret_cast<std::byte*>(&key), 1, DType::i64, ReduceOp::Min);
    const int64_t size = link_->size();
    return share_text(link_, static_cast<Rank>((key % size + size) % size), text);
}

}  // namespace convoy
