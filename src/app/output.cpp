#include "app/output.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace convoy {

Output::Output(std::string json, bool silent) : json_(std::move(json)), silent_(silent) {
    if (!silent_ && !json_.empty() && json_ != "-") AtomicFile probe(json_);
}

void Output::write(std::string_view text) const {
    if (silent_) return;
    std::fwrite(text.data(), 1, text.size(), stream());
    std::fflush(stream());
}

void Output::result(const Json& document) const {
    if (silent_ || json_.empty()) return;
    const std::string text = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    if (json_ != "-") return write_file(json_, text);
    const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
    require(written == text.size() && std::fflush(stdout) == 0, "cannot write the JSON document to standard output");
}

}  // namespace convoy
