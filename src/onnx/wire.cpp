#include "onnx/wire.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace convoy::onnx {

namespace {

const char* name_of(WireField::Kind kind) {
    switch (kind) {
        case WireField::Kind::Varint: return "a number";
        case WireField::Kind::Fixed64: return "a number of 64 bits";
        case WireField::Kind::Bytes: return "bytes";
        case WireField::Kind::Fixed32: return "a number of 32 bits";
    }
    return "";
}

void expect(const WireField& field, WireField::Kind kind) {
    require(field.kind == kind, "field {} is {}, expected {}", field.number, name_of(field.kind), name_of(kind));
}

template <class T>
void append_fixed(const WireField& field, WireField::Kind single, std::vector<double>& values) {
    if (field.kind == single) {
        if constexpr (sizeof(T) == 4)
            values.push_back(std::bit_cast<float>(static_cast<uint32_t>(field.value)));
        else
            values.push_back(std::bit_cast<double>(field.value));
        return;
    }
    const std::string_view bytes = field.as_bytes();
    require(bytes.size() % sizeof(T) == 0, "field {} holds {} bytes, expected a multiple of {}", field.number, bytes.size(), sizeof(T));
    values.reserve(values.size() + bytes.size() / sizeof(T));
    for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
        T value;
        std::memcpy(&value, bytes.data() + i, sizeof value);
        values.push_back(value);
    }
}

}  // namespace

int64_t WireField::as_int() const {
    expect(*this, Kind::Varint);
    return static_cast<int64_t>(value);
}

float WireField::as_float() const {
    expect(*this, Kind::Fixed32);
    return std::bit_cast<float>(static_cast<uint32_t>(value));
}

std::string_view WireField::as_bytes() const {
    expect(*this, Kind::Bytes);
    return bytes;
}

uint64_t WireReader::varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const auto byte = static_cast<unsigned char>(take(1)[0]);
        value |= static_cast<uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    fail("a number goes on for more than ten bytes");
}

std::string_view WireReader::take(uint64_t count) {
    require(count <= rest_.size(), "it ends inside a field: {} bytes were to follow, {} are left", count, rest_.size());
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
}

bool WireReader::next(WireField& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    require(tag >> 3 != 0 && tag >> 3 < (1u << 29), "a field has the number {}", tag >> 3);
    field = {.number = static_cast<int>(tag >> 3)};
    switch (tag & 7) {
        case 0:
            field.kind = WireField::Kind::Varint;
            field.value = varint();
            return true;
        case 1: {
            field.kind = WireField::Kind::Fixed64;
            std::memcpy(&field.value, take(8).data(), 8);
            return true;
        }
        case 2:
            field.kind = WireField::Kind::Bytes;
            field.bytes = take(varint());
            return true;
        case 5: {
            field.kind = WireField::Kind::Fixed32;
            uint32_t bits = 0;
            std::memcpy(&bits, take(4).data(), 4);
            field.value = bits;
            return true;
        }
        default: fail("field {} has the unknown wire type {}: this is no ONNX model, or a damaged one", field.number, tag & 7);
    }
}

void append_ints(const WireField& field, std::vector<int64_t>& values) {
    if (field.kind == WireField::Kind::Varint) {
        values.push_back(static_cast<int64_t>(field.value));
        return;
    }
    std::string_view bytes = field.as_bytes();
    while (!bytes.empty()) {
        uint64_t value = 0;
        size_t used = 0;
        for (int shift = 0;; shift += 7) {
            require(used < bytes.size() && shift < 64, "field {} ends inside a number", field.number);
            const auto byte = static_cast<unsigned char>(bytes[used++]);
            value |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) break;
        }
        values.push_back(static_cast<int64_t>(value));
        bytes.remove_prefix(used);
    }
}

void append_floats(const WireField& field, std::vector<double>& values) { append_fixed<float>(field, WireField::Kind::Fixed32, values); }
void append_doubles(const WireField& field, std::vector<double>& values) { append_fixed<double>(field, WireField::Kind::Fixed64, values); }

void WireWriter::varint(uint64_t value) {
    while (value >= 0x80) {
        text_ += static_cast<char>(value | 0x80);
        value >>= 7;
    }
    text_ += static_cast<char>(value);
}

void WireWriter::number(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
}

void WireWriter::real(int field, float value) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    text_.append(reinterpret_cast<const char*>(&bits), sizeof bits);
}

void WireWriter::begin_bytes(int field, uint64_t size) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(size);
}

void WireWriter::bytes(int field, std::string_view value) {
    begin_bytes(field, value.size());
    text_ += value;
}

}  // namespace convoy::onnx
