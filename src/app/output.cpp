#include "app/output.h"

#include <filesystem>

#include "app/options.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace convoy {

namespace {

bool is_one_file(const std::string& a, const std::string& b) {
    namespace fs = std::filesystem;
    std::error_code failed;
    if (fs::exists(a, failed) && !fs::is_regular_file(a, failed)) return false;  // a device takes anything from anybody
    if (fs::equivalent(a, b, failed)) return true;
    const fs::path whole_a = fs::weakly_canonical(a, failed), whole_b = fs::weakly_canonical(b, failed);
    return !failed && whole_a == whole_b;
}

}  // namespace

void expect_files(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read) {
    const auto none = [](const NamedFile& file) { return file.path.empty() || file.path == "-"; };
    for (size_t i = 0; i < written.size(); ++i) {
        if (none(written[i])) continue;
        for (const NamedFile& r : read)
            if (!none(r) && is_one_file(written[i].path, r.path))
                throw UsageError(
                    fmt::format("{} {} would overwrite the file of {}; name another", written[i].option, written[i].path, r.option));
        for (size_t j = 0; j < i; ++j)
            if (!none(written[j]) && is_one_file(written[i].path, written[j].path))
                throw UsageError(
                    fmt::format("{} and {} both name {}; name two files", written[j].option, written[i].option, written[i].path));
        expect_writable(written[i].path);
    }
}

Output::Output(std::string json, bool silent) : json_(std::move(json)), silent_(silent) {
    if (!silent_ && !json_.empty() && json_ != "-") expect_writable(json_);
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
