#include "tensor/dtype.h"

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"

namespace convoy {

namespace {

struct Entry {
    std::string_view name;
    int64_t bytes;
    bool floating;
};

// In the order of the enumeration.
constexpr std::array<Entry, 8> kTypes{{{"f64", 8, true},
                                       {"f32", 4, true},
                                       {"tf32", 4, true},
                                       {"bf16", 2, true},
                                       {"f16", 2, true},
                                       {"i64", 8, false},
                                       {"i32", 4, false},
                                       {"u8", 1, false}}};

const Entry& entry(DType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

int64_t size_of(DType type) { return entry(type).bytes; }
std::string_view name_of(DType type) { return entry(type).name; }
bool is_floating(DType type) { return entry(type).floating; }

DType dtype_named(std::string_view name) {
    std::vector<std::string> known;
    for (size_t i = 0; i < kTypes.size(); ++i) {
        if (kTypes[i].name == name) return static_cast<DType>(i);
        known.emplace_back(kTypes[i].name);
    }
    fail("unknown data type \"{}\"; expected one of {}", name, fmt::join(known, ", "));
}

}  // namespace convoy
