#include "data/npy.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/file.h"
#include "data/bytes.h"

namespace convoy {

namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};

void copy(const char* data, Tensor& tensor) { std::memcpy(tensor.data(), data, static_cast<size_t>(tensor.bytes())); }

template <class Stored>
void widen(const char* data, Tensor& tensor) {
    for (auto& value : tensor.as<int32_t>()) {
        value = static_cast<int32_t>(load_little<Stored>(data));  // NOLINT(bugprone-signed-char-misuse): numbers, not characters
        data += sizeof(Stored);
    }
}

void from_bool(const char* data, Tensor& tensor) {
    for (auto& value : tensor.as<uint8_t>()) value = *data++ != 0;
}

float from_half(uint16_t half) {
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    const float sign = half >> 15 ? -1.0F : 1.0F;
    if (exponent == 31) return mantissa ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
    return sign *
           (exponent ? std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25) : std::ldexp(static_cast<float>(mantissa), -24));
}

struct Half {
    uint16_t bits;
};
struct Boolean {
    uint8_t byte;
};

template <class Out, class Stored>
Out value_of(Stored stored) {
    if constexpr (std::is_same_v<Stored, Half>)
        return static_cast<Out>(from_half(stored.bits));
    else if constexpr (std::is_same_v<Stored, Boolean>)
        return static_cast<Out>(stored.byte != 0);
    else if constexpr (std::is_same_v<Out, int32_t> && std::is_same_v<Stored, int64_t>)
        return stored < std::numeric_limits<int32_t>::min() || stored > std::numeric_limits<int32_t>::max() ? -1
                                                                                                            : static_cast<int32_t>(stored);
    else
        return static_cast<Out>(stored);
}

template <class Out, class Stored>
void convert_run(const char* data, int64_t count, std::byte* out) {
    if constexpr (std::is_same_v<Out, Stored>) {
        std::memcpy(out, data, static_cast<size_t>(count) * sizeof(Out));
    } else {
        auto* const to = reinterpret_cast<Out*>(out);
        for (int64_t i = 0; i < count; ++i) to[i] = value_of<Out>(load_little<Stored>(data + i * static_cast<int64_t>(sizeof(Stored))));
    }
}

template <class Stored>
void convert_to(const char* data, int64_t count, DType type, std::byte* out) {
    if (type == DType::f64) return convert_run<double, Stored>(data, count, out);
    if (type == DType::f32) return convert_run<float, Stored>(data, count, out);
    CONVOY_CHECK(type == DType::i32, "numbers of a file as {}", name_of(type));
    if constexpr (std::is_integral_v<Stored> || std::is_same_v<Stored, Boolean>) return convert_run<int32_t, Stored>(data, count, out);
    raise_bug(__FILE__, __LINE__, "integers", "labels from real numbers");
}

struct Type {
    std::string_view name;
    int64_t bytes;
    DType kept;
    void (*decode)(const char* data, Tensor& tensor);
    void (*convert)(const char* data, int64_t count, DType type, std::byte* out);
};

constexpr std::array<Type, 10> kTypes{{{"<f8", 8, DType::f64, copy, convert_to<double>},
                                       {"<f4", 4, DType::f32, copy, convert_to<float>},
                                       {"<f2", 2, DType::f16, copy, convert_to<Half>},
                                       {"<i8", 8, DType::i64, copy, convert_to<int64_t>},
                                       {"<i4", 4, DType::i32, copy, convert_to<int32_t>},
                                       {"|u1", 1, DType::u8, copy, convert_to<uint8_t>},
                                       {"|b1", 1, DType::u8, from_bool, convert_to<Boolean>},
                                       {"<i2", 2, DType::i32, widen<int16_t>, convert_to<int16_t>},
                                       {"|i1", 1, DType::i32, widen<int8_t>, convert_to<int8_t>},
                                       {"<u2", 2, DType::i32, widen<uint16_t>, convert_to<uint16_t>}}};

struct Header {
    std::string descr;
    bool fortran = false;
    Shape shape;
};

// The header is a Python dictionary with exactly the keys descr, fortran_order and shape, each once, in any order.
class HeaderParser {
  public:
    HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    Header parse() {
        Header header;
        bool descr = false, fortran = false, shape = false;
        const auto once = [&](bool& seen, std::string_view key) {
            require(!seen, "{}: malformed npy header: key '{}' appears twice", name_, key);
            seen = true;
        };
        expect('{');
        while (!take('}')) {
            const std::string key = string();
            expect(':');
            if (key == "descr") {
                once(descr, key);
                require(peek() != '[', "{}: structured NumPy types are not supported; expected a plain type such as '<f4'", name_);
                header.descr = string();
            } else if (key == "fortran_order") {
                once(fortran, key);
                header.fortran = boolean();
            } else if (key == "shape") {
                once(shape, key);
                header.shape = tuple();
            } else {
                fail("{}: malformed npy header: unknown key {}; expected descr, fortran_order and shape", name_, in_quotes(key));
            }
            if (!take(',')) {
                expect('}');
                break;
            }
        }
        skip_space();
        require(at_ == text_.size(), "{}: malformed npy header: expected nothing after }}, found {}", name_, in_quotes(text_.substr(at_)));
        require(descr && fortran && shape, "{}: malformed npy header: key '{}' is missing", name_,
                !descr     ? "descr"
                : !fortran ? "fortran_order"
                           : "shape");
        return header;
    }

  private:
    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }
    char peek() {
        skip_space();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char c) {
        if (peek() != c || at_ == text_.size()) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        require(take(c), "{}: malformed npy header: expected {} at character {}, found {}", name_, c, at_,
                in_quotes(text_.substr(at_, 10)));
    }
    std::string string() {
        const char quote = peek();
        require(quote == '\'' || quote == '"', "{}: malformed npy header: expected a string at character {}, found {}", name_, at_,
                in_quotes(text_.substr(at_, 10)));
        const size_t end = text_.find(quote, ++at_);
        require(end != std::string_view::npos, "{}: malformed npy header: a string is not closed", name_);
        const std::string value(text_.substr(at_, end - at_));
        at_ = end + 1;
        return value;
    }
    bool boolean() {
        skip_space();
        for (const std::string_view word : {"True", "False"}) {
            if (text_.substr(at_, word.size()) != word) continue;
            at_ += word.size();
            return word == "True";
        }
        fail("{}: malformed npy header: expected True or False at character {}, found {}", name_, at_, in_quotes(text_.substr(at_, 10)));
    }
    int64_t size() {
        skip_space();
        int64_t value = 0;
        const auto [next, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        require(error == std::errc() && value >= 0, "{}: malformed npy header: expected a size at character {}, found {}", name_, at_,
                in_quotes(text_.substr(at_, 20)));
        at_ = static_cast<size_t>(next - text_.data());
        return value;
    }
    Shape tuple() {
        Shape shape;
        expect('(');
        while (!take(')')) {
            require(shape.size() < Dims::kMost, "{}: expected at most {} dims, found more", name_, Dims::kMost);
            shape.push_back(size());
            if (take(',')) continue;
            require(shape.size() > 1, "{}: malformed npy header: ({}) is a number, not a tuple", name_, shape[0]);
            expect(')');
            break;
        }
        return shape;
    }

    std::string_view text_;
    const std::string& name_;
    size_t at_ = 0;
};

const Type& type_named(const std::string& descr, const std::string& name) {
    for (const auto& type : kTypes)
        if (type.name == descr) return type;
    std::vector<std::string_view> known;
    for (const auto& type : kTypes) known.push_back(type.name);
    fail("{}: unsupported NumPy type {}{}; expected one of {}", name, in_quotes(descr), descr.starts_with('>') ? " (big-endian)" : "",
         fmt::join(known, ", "));
}

// `columns` holds the elements with the first index running fastest, under the reversed shape.
Tensor from_fortran_order(const Tensor& columns, const Shape& shape) {
    Tensor result(shape, columns.dtype());
    Dims strides = Dims::filled(shape.size(), 1);
    for (int d = 1; d < shape.size(); ++d) strides[d] = strides[d - 1] * shape[d - 1];
    const int64_t unit = size_of(columns.dtype());
    Dims index = Dims::filled(shape.size(), 0);
    int64_t from = 0;
    for (int64_t i = 0; i < result.numel(); ++i) {
        std::memcpy(result.data() + i * unit, columns.data() + from * unit, static_cast<size_t>(unit));
        for (int d = shape.size() - 1; d >= 0; --d) {
            from += strides[d];
            if (++index[d] < shape[d]) break;
            from -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
    return result;
}

}  // namespace

NpyView view_npy(std::string_view bytes, const std::string& name) {
    require(bytes.substr(0, kMagic.size()) == kMagic.substr(0, bytes.size()), "{}: not an npy file: expected it to begin with \\x93NUMPY",
            name);
    require(bytes.size() >= 10, "{}: truncated npy header: expected at least 10 bytes, found {}", name, bytes.size());
    const int version = static_cast<uint8_t>(bytes[6]);
    require(version >= 1 && version <= 3, "{}: unknown npy version {}; expected 1, 2 or 3", name, version);
    const size_t prefix = version == 1 ? 10 : 12;
    require(bytes.size() >= prefix, "{}: truncated npy header: expected at least {} bytes, found {}", name, prefix, bytes.size());
    const size_t length = version == 1 ? load_little<uint16_t>(bytes.data() + 8) : load_little<uint32_t>(bytes.data() + 8);
    require(bytes.size() - prefix >= length, "{}: truncated npy header: expected {} bytes, found {}", name, prefix + length, bytes.size());
    const Header header = HeaderParser(bytes.substr(prefix, length), name).parse();
    const Type& type = type_named(header.descr, name);
    const auto expected = checked_bytes(header.shape, type.bytes);
    require(expected.has_value(), "{}: impossible shape {}: its size is past 2^62 bytes", name, to_string(header.shape));
    const std::string_view data = bytes.substr(prefix + length);
    const auto found = static_cast<int64_t>(data.size());
    require(found == *expected, "{}: {}: expected {} bytes of data for shape {}, found {}", name,
            found < *expected ? "truncated" : "trailing bytes", *expected, to_string(header.shape), found);
    return {header.shape, type.kept, type.bytes, header.fortran, data, static_cast<int>(&type - kTypes.data())};
}

void NpyView::convert(int64_t first, int64_t count, DType to, std::byte* out) const {
    kTypes[static_cast<size_t>(type)].convert(data.data() + first * element_bytes, count, to, out);
}

Tensor decode_npy(std::string_view bytes, const std::string& name) {
    const NpyView view = view_npy(bytes, name);
    Shape stored = view.shape;
    if (view.fortran) std::reverse(stored.begin(), stored.end());
    Tensor tensor(stored, view.kept);
    kTypes[static_cast<size_t>(view.type)].decode(view.data.data(), tensor);
    return view.fortran ? from_fortran_order(tensor, view.shape) : tensor;
}

Tensor read_npy(const std::filesystem::path& path) {
    const MappedFile file(path);
    return decode_npy(file.bytes(), path.string());
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
    const Type* type = nullptr;
    for (const auto& t : kTypes)
        if (t.kept == tensor.dtype() && t.decode == copy) type = &t;
    require(type != nullptr, "{}: NumPy has no type for {}; convert the tensor first", path.string(), name_of(tensor.dtype()));
    CONVOY_CHECK(tensor.data() != nullptr, "writing an empty tensor to {}", path.string());
    const Shape& shape = tensor.shape();
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type->name,
                                   fmt::join(shape.begin(), shape.end(), ", "), shape.size() == 1 ? "," : "");
    constexpr size_t kPrefix = 10, kAlignment = 64;
    text.append(kAlignment - 1 - (kPrefix + text.size()) % kAlignment, ' ');
    text += '\n';
    const auto length = static_cast<uint16_t>(text.size());
    AtomicFile file(path);
    file.write(kMagic);
    file.write({"\x01\x00", 2});
    file.write({reinterpret_cast<const char*>(&length), sizeof length});
    file.write(text);
    file.write({reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
    file.commit();
}

}  // namespace convoy
