// What the ranks of a run decide together: who writes, when all stop, whose words are said. Without a link, one rank that decides alone.
#pragma once

#include <string>

#include "exec/link.h"

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
    // The leader's text.
    std::string from_leader(const std::string& text) const;
    // The text of the rank with the lowest position, of those the first.
    std::string earliest(int position, const std::string& text) const;

  private:
    bool alone() const { return !link_ || link_->size() == 1; }

    Link* link_;
};

}  // namespace convoy
