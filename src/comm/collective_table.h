// Which algorithm runs a collective: by kind, size of the group, whether it is on one node, and bytes. Filled by measurement (measure.h) and cached as JSON; the defaults are
// what measured best in general.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "comm/collective.h"

namespace convoy {

class CollectiveTable {
  public:
    struct Entry {
        Traffic kind = Traffic::AllReduce;
        int group_size = 2;
        bool one_node = true;
        int64_t up_to_bytes = 0;  // holds up to and including so many, and beyond when no entry of this kind and size reaches further
        Algorithm algorithm = Algorithm::Library;
        bool operator==(const Entry&) const = default;
    };

    // What is known without measuring about "thread" or "mpi".
    static CollectiveTable defaults(std::string_view transport);

    // Adds an entry, or replaces the one that differs in the algorithm alone. Error when the algorithm does not exist for the kind.
    void set(const Entry& entry);
    // Takes all entries of `other`, and drops its own of the same kinds on as many nodes.
    void replace(const CollectiveTable& other);
    // The choice: of the entries of this kind those on as many nodes (of the others when there are none), of those the ones with the nearest group
    // size (the larger at a tie), of those the first that reaches `bytes`. Library when the kind has no entry.
    Algorithm choose(Traffic kind, int group_size, bool one_node, int64_t bytes) const;
    // In order of kind, nodes, group size, bytes.
    const std::vector<Entry>& entries() const { return entries_; }
    bool operator==(const CollectiveTable&) const = default;

  private:
    std::vector<Entry> entries_;
};

Json to_json(const CollectiveTable& table);
// Error says what is wrong with it.
CollectiveTable collective_table_from_json(const Json& json);

}  // namespace convoy
