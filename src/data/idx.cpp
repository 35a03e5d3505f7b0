#include "data/idx.h"

#include "data/bytes.h"
#include "data/gzip.h"

namespace convoy {

namespace {

template <class Stored, class Kept>
void decode(const char* data, Tensor& tensor) {
    for (auto& value : tensor.as<Kept>()) {
        value = static_cast<Kept>(load_big<Stored>(data));  // NOLINT(bugprone-signed-char-misuse): numbers, not characters
        data += sizeof(Stored);
    }
}

struct Type {
    uint8_t code;
    int64_t bytes;
    DType kept;
    void (*decode)(const char* data, Tensor& tensor);
};

constexpr std::array<Type, 6> kTypes{{{0x08, 1, DType::u8, decode<uint8_t, uint8_t>},
                                      {0x09, 1, DType::i32, decode<int8_t, int32_t>},
                                      {0x0B, 2, DType::i32, decode<int16_t, int32_t>},
                                      {0x0C, 4, DType::i32, decode<int32_t, int32_t>},
                                      {0x0D, 4, DType::f32, decode<float, float>},
                                      {0x0E, 8, DType::f64, decode<double, double>}}};

constexpr int64_t kMostHeader = 4 + 4 * Dims::kMost;

struct Header {
    const Type* type = nullptr;
    Shape shape;
    int64_t header_bytes = 0, total_bytes = 0;
};

// `bytes`: the whole file, or at least as much as the longest header.
Header parse_header(std::string_view bytes, const std::string& name) {
    require(bytes.size() >= 4, "{}: truncated IDX header: expected at least 4 bytes, found {}", name, bytes.size());
    const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    require(at(0) == 0 && at(1) == 0, "{}: not an IDX file: expected it to begin with bytes 00 00, found {:02x} {:02x}", name, at(0),
            at(1));
    Header header;
    for (const auto& type : kTypes)
        if (type.code == at(2)) header.type = &type;
    require(header.type != nullptr,
            "{}: unknown IDX type 0x{:02x}; expected 0x08 (u8), 0x09 (s8), 0x0b (i16), 0x0c (i32), 0x0d (f32) or 0x0e (f64)", name, at(2));
    const int rank = at(3);
    require(rank >= 1 && rank <= Dims::kMost, "{}: expected 1 to {} dims, found {}", name, Dims::kMost, rank);
    header.header_bytes = 4 + 4 * rank;
    require(static_cast<int64_t>(bytes.size()) >= header.header_bytes, "{}: truncated IDX header: expected {} bytes for {} dims, found {}",
            name, header.header_bytes, rank, bytes.size());
    for (int d = 0; d < rank; ++d) header.shape.push_back(load_big<uint32_t>(bytes.data() + 4 + int64_t{4} * d));
    const auto data_bytes = checked_bytes(header.shape, header.type->bytes);
    require(data_bytes.has_value(), "{}: impossible shape {}: its size is past 2^62 bytes", name, to_string(header.shape));
    header.total_bytes = header.header_bytes + *data_bytes;
    return header;
}

Tensor decode_body(std::string_view bytes, const Header& header) {
    Tensor tensor(header.shape, header.type->kept);
    header.type->decode(bytes.data() + header.header_bytes, tensor);
    return tensor;
}

void require_size(int64_t found, const Header& header, const std::string& name) {
    require(found >= header.total_bytes, "{}: truncated: expected {} bytes for shape {}, found {}", name, header.total_bytes,
            to_string(header.shape), found);
}

}  // namespace

Tensor read_idx(const std::filesystem::path& path) {
    const MappedFile file(path);
    const std::string name = path.string();
    if (!is_gzip(file.bytes())) {
        const Header header = parse_header(file.bytes(), name);
        const auto found = static_cast<int64_t>(file.bytes().size());
        require_size(found, header, name);
        require(found == header.total_bytes, "{}: trailing bytes: expected {} bytes for shape {}, found {}", name, header.total_bytes,
                to_string(header.shape), found);
        return decode_body(file.bytes(), header);
    }
    // The header first, so that the rest is inflated no further than one byte past what it promises.
    const Header header = parse_header(gunzip(file.bytes(), kMostHeader, name), name);
    const std::string bytes = gunzip(file.bytes(), header.total_bytes + 1, name);
    const auto found = static_cast<int64_t>(bytes.size());
    require_size(found, header, name);
    require(found == header.total_bytes, "{}: trailing bytes: expected {} uncompressed bytes for shape {}, found more", name,
            header.total_bytes, to_string(header.shape));
    return decode_body(bytes, header);
}

std::string encode_idx(const Tensor& tensor) {
    const Type* type = nullptr;
    for (const auto& t : kTypes)
        if (t.kept == tensor.dtype() && t.bytes == size_of(t.kept)) type = &t;
    require(type != nullptr, "IDX cannot hold elements of {}; expected u8, i32, f32 or f64", name_of(tensor.dtype()));
    require(!tensor.shape().empty(), "IDX cannot hold a scalar; expected 1 to {} dims", Dims::kMost);
    std::string bytes{0, 0, static_cast<char>(type->code), static_cast<char>(tensor.shape().size())};
    const auto put = [&](const char* data, int64_t size) {
        bytes.append(std::make_reverse_iterator(data + size), std::make_reverse_iterator(data));
    };
    for (const int64_t size : tensor.shape()) {
        require(size < int64_t{1} << 32, "IDX cannot hold shape {}: sizes must be below 2^32", to_string(tensor.shape()));
        const auto value = static_cast<uint32_t>(size);
        put(reinterpret_cast<const char*>(&value), sizeof value);
    }
    const char* data = reinterpret_cast<const char*>(tensor.data());
    for (int64_t i = 0; i < tensor.numel(); ++i) put(data + i * type->bytes, type->bytes);
    return bytes;
}

}  // namespace convoy
