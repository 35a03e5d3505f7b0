// What the ranks of a run decide together: who writes, when all stop, whose words are said. Without a link, one rank that decides alone.
#pragma once

#include <span>
#include <string>

#include "exec/link.h"
#include "tensor/tensor.h"

namespace convoy {

class Team {
  public:
    // The link must outlive the team. All calls below are made by all ranks at the same time.
    explicit Team(Link* link) : link_(link) {}

    // Whether this rank writes files and speaks.
    bool leads() const { return !link_ || link_->rank() == 0; }

    // Whether it is so on any rank. Allocates nothing.
    bool any(bool mine) const;
    // The sum over all ranks.
    int64_t sum(int64_t mine) const;
    // Adds up over all ranks.
    void sum(std::span<double> values) const;
    // The leader's text.
    std::string from_leader(const std::string& text) const;
    // The whole of a tensor of which every rank has a box, or nothing (null); boxes of several ranks that overlap hold the same. Finite numbers only.
    Tensor whole(const Tensor* part, const Box& box, const Shape& shape, DType type) const;
    // The text of the rank with the lowest position, of those the first.
    std::string earliest(int position, const std::string& text) const;

  private:
    bool alone() const { return !link_ || link_->size() == 1; }

    Link* link_;
};

}  // namespace convoy
