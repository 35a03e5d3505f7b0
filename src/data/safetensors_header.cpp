#include "data/safetensors_header.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "data/bytes.h"

namespace convoy {

namespace {

constexpr std::array<SafetensorsType, 17> kTypes{{{"F64", 8, DType::f64},
                                                  {"F32", 4, DType::f32},
                                                  {"F16", 2, DType::f16},
                                                  {"BF16", 2, DType::bf16},
                                                  {"I64", 8, DType::i64},
                                                  {"I32", 4, DType::i32},
                                                  {"U8", 1, DType::u8},
                                                  {"BOOL", 1, {}},
                                                  {"I8", 1, {}},
                                                  {"I16", 2, {}},
                                                  {"U16", 2, {}},
                                                  {"U32", 4, {}},
                                                  {"U64", 8, {}},
                                                  {"C64", 8, {}},
                                                  {"F8_E5M2", 1, {}},
                                                  {"F8_E4M3", 1, {}},
                                                  {"F8_E8M0", 1, {}}}};

// Follows the parser's events through the one structure that is allowed. There is no document tree: a hostile header of 100 MB costs no
// more memory than the names in it, and a repeated key, which a tree would swallow, is seen.
class HeaderReader {
  public:
    explicit HeaderReader(const std::string& file) : file_(file) {}

    SafetensorsHeader take() {
        require(at_ == At::End, "{}: malformed safetensors header: it is incomplete", file_);
        return std::move(header_);
    }

    // The events, under the names that the JSON library calls.
    bool null() { unexpected("null"); }
    bool boolean(bool) { unexpected("a boolean"); }
    bool number_integer(int64_t) { unexpected("a negative number"); }
    bool number_float(double, const std::string&) { unexpected("a number that is not a 64-bit integer"); }
    bool binary(nlohmann::json::binary_t&) { unexpected("binary data"); }

    bool number_unsigned(uint64_t value) {
        if (at_ != At::Shape && at_ != At::Offsets) unexpected("a number");
        require(value <= uint64_t{INT64_MAX}, "{}: number {} is too large", where(), value);
        if (at_ == At::Shape) {
            require(entry_.shape.size() < Dims::kMost, "{}: expected at most {} dims, found more", where(), Dims::kMost);
            entry_.shape.push_back(static_cast<int64_t>(value));
        } else {
            require(offsets_ < 2, "{}: expected two data_offsets, found more", where());
            (offsets_++ == 0 ? entry_.begin : entry_.end) = static_cast<int64_t>(value);
        }
        return true;
    }

    bool string(std::string& text) {
        if (at_ == At::Dtype) {
            entry_.type = safetensors_type(text);
            require(entry_.type != nullptr, "{}: unknown dtype {}", where(), in_quotes(text));
            at_ = At::Fields;
        } else if (at_ == At::MetadataValue) {
            header_.metadata[key_] = text;
            at_ = At::MetadataKeys;
        } else {
            unexpected("a string");
        }
        return true;
    }

    bool key(std::string& name) {
        if (at_ == At::Names) {
            require(names_.insert(name).second, "{}: malformed safetensors header: tensor {} appears twice", file_, in_quotes(name));
            key_ = name;
            at_ = name == kMetadataKey ? At::MetadataOpen : At::EntryOpen;
        } else if (at_ == At::Fields) {
            at_ = field(name);
        } else {  // the parser sends a key only inside an object, and the objects are three
            require(!header_.metadata.contains(name), "{}: malformed safetensors header: metadata key {} appears twice", file_,
                    in_quotes(name));
            key_ = name;
            at_ = At::MetadataValue;
        }
        return true;
    }

    bool start_object(size_t) {
        switch (at_) {
            case At::Start: at_ = At::Names; return true;
            case At::MetadataOpen: at_ = At::MetadataKeys; return true;
            case At::EntryOpen:
                entry_ = {};
                entry_.name = key_;
                has_shape_ = false;
                offsets_ = -1;
                at_ = At::Fields;
                return true;
            default: unexpected("an object");
        }
    }

    bool end_object() {
        if (at_ == At::Fields) {
            require(entry_.type != nullptr, "{}: dtype is missing", where());
            require(has_shape_, "{}: shape is missing", where());
            require(offsets_ >= 0, "{}: data_offsets is missing", where());
            header_.entries.push_back(entry_);
        }
        at_ = at_ == At::Names ? At::End : At::Names;
        return true;
    }

    bool start_array(size_t) {
        if (at_ == At::ShapeOpen) {
            has_shape_ = true;
            at_ = At::Shape;
        } else if (at_ == At::OffsetsOpen) {
            offsets_ = 0;
            at_ = At::Offsets;
        } else {
            unexpected("an array");
        }
        return true;
    }

    bool end_array() {
        require(at_ != At::Offsets || offsets_ == 2, "{}: expected two data_offsets, found {}", where(), offsets_);
        at_ = At::Fields;
        return true;
    }

    bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
        fail("{}: malformed safetensors header: not valid JSON at byte {}: {}", file_, position, in_quotes(error.what()));
    }

  private:
    enum class At {
        Start,
        Names,
        EntryOpen,
        Fields,
        Dtype,
        ShapeOpen,
        Shape,
        OffsetsOpen,
        Offsets,
        MetadataOpen,
        MetadataKeys,
        MetadataValue,
        End
    };

    At field(const std::string& name) const {
        const bool dtype = name == "dtype", shape = name == "shape", offsets = name == "data_offsets";
        require(dtype || shape || offsets, "{}: unknown field {}; expected dtype, shape and data_offsets", where(), in_quotes(name));
        require(!(dtype && entry_.type) && !(shape && has_shape_) && !(offsets && offsets_ >= 0), "{}: field {} appears twice", where(),
                name);
        return dtype ? At::Dtype : shape ? At::ShapeOpen : At::OffsetsOpen;
    }

    std::string where() const { return fmt::format("{}: tensor {}", file_, in_quotes(key_)); }

    const char* expected() const {
        switch (at_) {
            case At::EntryOpen: return "an object with dtype, shape and data_offsets";
            case At::Dtype: return "the dtype's name";
            case At::ShapeOpen: return "the shape as an array";
            case At::Shape: return "a non-negative size";
            case At::OffsetsOpen: return "data_offsets as an array";
            case At::Offsets: return "a non-negative offset";
            case At::MetadataOpen: return "an object of strings";
            default: return "a string";
        }
    }

    [[noreturn]] void unexpected(const char* found) const {
        const bool metadata = at_ == At::MetadataValue;
        fail("{}: malformed safetensors header: {} {}: expected {}, found {}", file_, metadata ? "__metadata__ key" : "tensor",
             in_quotes(key_), expected(), found);
    }

    const std::string& file_;
    SafetensorsHeader header_;
    std::set<std::string> names_;
    At at_ = At::Start;
    std::string key_;
    SafetensorsEntry entry_;
    bool has_shape_ = false;
    int offsets_ = -1;  // how many were read; -1 before the array
};

void require_exact_cover(std::vector<SafetensorsEntry>& entries, int64_t buffer_bytes, const std::string& file) {
    for (const auto& e : entries) {
        require(e.begin <= e.end && e.end <= buffer_bytes, "{}: tensor {}: data_offsets [{}, {}] are not inside the {} bytes of data", file,
                in_quotes(e.name), e.begin, e.end, buffer_bytes);
        const auto bytes = checked_bytes(e.shape, e.type->bytes);
        require(bytes.has_value(), "{}: tensor {}: impossible shape {}: its size is past 2^62 bytes", file, in_quotes(e.name),
                to_string(e.shape));
        require(e.end - e.begin == *bytes, "{}: tensor {}: expected {} bytes for {} {}, found data_offsets of {} bytes", file,
                in_quotes(e.name), *bytes, e.type->name, to_string(e.shape), e.end - e.begin);
    }
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
    int64_t covered = 0;
    for (const auto& e : entries) {
        require(e.begin == covered, "{}: tensor {}: its data begin at {}, which leaves {} at {}", file, in_quotes(e.name), e.begin,
                e.begin > covered ? "a hole" : "an overlap", std::min(e.begin, covered));
        covered = e.end;
    }
    require(covered == buffer_bytes, "{}: trailing bytes: the tensors cover {} bytes of data, found {}", file, covered, buffer_bytes);
}

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) {
    for (const auto& type : kTypes)
        if (type.name == name) return &type;
    return nullptr;
}

const SafetensorsType* safetensors_type(DType dtype) {
    for (const auto& type : kTypes)
        if (type.dtype == dtype) return &type;
    return nullptr;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t buffer_bytes, const std::string& file) {
    // Said by the format, and needed here because the JSON library would skip a byte order mark.
    require(text.starts_with('{'), "{}: malformed safetensors header: expected it to begin with {{", file);
    HeaderReader reader(file);
    nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
    SafetensorsHeader header = reader.take();
    require_exact_cover(header.entries, buffer_bytes, file);
    return header;
}

}  // namespace convoy
