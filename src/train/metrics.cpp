#include "train/metrics.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace convoy {

namespace {

// Whether a run at `progress` had written this line. What is no line of ours stays.
bool was_written(std::string_view line, const Progress& progress) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("kind")) return true;
    const auto number = [&](const char* name) {
        return json.contains(name) && json[name].is_number_integer() ? json[name].get<int64_t>() : 0;
    };
    return json["kind"] == "epoch" ? number("epoch") <= progress.epoch : number("step") <= progress.step;
}

std::string lines_until(std::string_view text, const Progress& progress) {
    std::string kept;
    if (progress.step == 0) return kept;
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        if (was_written(text.substr(0, end), progress)) kept += text.substr(0, end + 1);
        text.remove_prefix(end + 1);
    }
    return kept;
}

std::string csv_header() { return fmt::format("{}\n", fmt::join(kMetricColumns, ",")); }

// Lines that are none of ours have no place in the table.
std::string table_of(std::string_view lines) {
    std::string text = csv_header();
    for (size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
        const Json json = Json::parse(lines.substr(0, end), nullptr, false);
        if (json.is_object() && json.contains("kind")) text += csv_row(json);
        lines.remove_prefix(end + 1);
    }
    return text;
}

}  // namespace

std::string csv_row(const Json& line) {
    std::string row;
    for (size_t c = 0; c < kMetricColumns.size(); ++c) {
        if (c > 0) row += ',';
        const auto at = line.find(std::string(kMetricColumns[c]));
        if (at == line.end() || at->is_null()) continue;
        row += at->is_string() ? at->get<std::string>() : at->dump();
    }
    return row + '\n';
}

MetricsFile::MetricsFile(const std::filesystem::path& run_dir, const Progress& progress) {
    const auto lines = run_dir / "metrics.jsonl", table = run_dir / "metrics.csv";
    const std::string text = std::filesystem::exists(lines) ? read_file(lines) : "", kept = lines_until(text, progress);
    if (kept != text) write_file(lines, kept);
    write_file(table, table_of(kept));
    lines_ = std::make_unique<Lines>(lines);
    table_ = std::make_unique<Lines>(table);
}

MetricsFile::~MetricsFile() = default;

void MetricsFile::append(const Json& line) {
    lines_->append(line.dump() + "\n");
    table_->append(csv_row(line));
}

void MetricsFile::sync() {
    lines_->sync();
    table_->sync();
}

MetricsFile::Lines::Lines(std::filesystem::path path) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    require(descriptor_ >= 0, "cannot write {}: {}", path_.string(), std::strerror(errno));
}

MetricsFile::Lines::~Lines() { ::close(descriptor_); }

void MetricsFile::Lines::append(const std::string& text) {
    struct stat before {};
    const bool known = ::fstat(descriptor_, &before) == 0;
    ssize_t put = 0;
    do put = ::write(descriptor_, text.data(), text.size());
    while (put < 0 && errno == EINTR);
    if (put == static_cast<ssize_t>(text.size())) return;
    const int cause = put < 0 ? errno : ENOSPC;
    const bool restored = known && ::ftruncate(descriptor_, before.st_size) == 0;
    fail("cannot write {}: {}{}", path_.string(), std::strerror(cause), restored ? "" : "; its last line may be cut off");
}

void MetricsFile::Lines::sync() { require(::fsync(descriptor_) == 0, "cannot write {}: {}", path_.string(), std::strerror(errno)); }

}  // namespace convoy
