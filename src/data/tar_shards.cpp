// WebDataset: tar files whose samples are runs of entries with one name up to the first dot of its last part: "a/0001.jpg", "a/0001.cls".
#include <charconv>
#include <deque>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "data/archive/archive.h"
#include "data/image_dataset.h"

namespace convoy {

namespace {

std::optional<int32_t> whole_number(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
    int32_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    return failed == std::errc() && end == text.data() + text.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

int32_t label_in_json(std::string_view text, const std::string& where) {
    const Json json = Json::parse(text, nullptr, false);
    require(json.is_object(), "{}: expected a JSON object with \"label\" or \"cls\", found {}", where, in_quotes(text));
    for (const char* field : {"label", "cls"}) {
        const auto at = json.find(field);
        if (at == json.end()) continue;
        require(at->is_number_unsigned() && at->get<uint64_t>() <= INT32_MAX, "{}: field \"{}\": expected a whole number, found {}", where,
                field, in_quotes(at->dump()));
        return at->get<int32_t>();
    }
    fail("{}: expected a field \"label\" or \"cls\", found neither", where);
}

class TarSource final : public ImageSource {
  public:
    explicit TarSource(const std::vector<std::filesystem::path>& paths) {
        for (const auto& path : paths) {
            archives_.emplace_back(path);
            shard_ = path.string();
            for (const ArchiveEntry& entry : archives_.back().entries()) add(entry);
            finish();
        }
        require(!samples_.empty(), "{}: expected samples of a picture and a label, found none",
                paths.empty() ? "tar shards" : paths[0].string());
    }

    int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
    int32_t label(int64_t index) const override { return *at(index).label; }
    std::string name(int64_t index) const override { return at(index).name; }
    std::string_view bytes(int64_t index, std::string&) const override { return at(index).picture; }

  private:
    struct Sample {
        std::string name;
        std::string_view picture;
        std::optional<int32_t> label;
    };
    const Sample& at(int64_t index) const { return samples_[static_cast<size_t>(index)]; }

    void add(const ArchiveEntry& entry) {
        const size_t slash = entry.name.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
        const size_t dot = entry.name.find('.', begin);
        if (dot == std::string::npos || dot == begin) return;  // no part of a sample; the second: a hidden file
        const std::string key = entry.name.substr(0, dot), ending = entry.name.substr(dot + 1);
        if (key != key_) {
            finish();
            key_ = key;
            now_ = {.name = shard_ + ":" + key};
        }
        const std::string where = shard_ + ":" + entry.name;
        if (ending == "jpg" || ending == "jpeg" || ending == "png" || ending == "JPEG") {
            require(now_.picture.empty(), "{}: sample {} has two pictures", shard_, in_quotes(key));
            now_.picture = entry.bytes;
        } else if (ending == "cls") {
            now_.label = whole_number(entry.bytes);
            require(now_.label.has_value(), "{}: expected the number of a class, found {}", where, in_quotes(entry.bytes));
        } else if (ending == "json" && !now_.label) {
            now_.label = label_in_json(entry.bytes, where);
        }
    }

    void finish() {
        if (key_.empty()) return;
        require(!now_.picture.empty(), "{}: sample {} has no picture (.jpg, .jpeg or .png)", shard_, in_quotes(key_));
        require(now_.label.has_value(), "{}: sample {} has no label (.cls or .json)", shard_, in_quotes(key_));
        samples_.push_back(std::move(now_));
        key_.clear();
        now_ = {};
    }

    std::deque<Archive> archives_;
    std::vector<Sample> samples_;
    std::string shard_, key_;  // while reading
    Sample now_;
};

}  // namespace

std::unique_ptr<ImageSource> open_tar_shards(const std::vector<std::filesystem::path>& shards) {
    return std::make_unique<TarSource>(shards);
}

}  // namespace convoy
