// Protocol buffers on the wire, read and written: numbers and strings with field numbers, nothing else. Hand-written so that a length that a file
// claims is compared with the bytes that are there before anything is made of it, and so that weights stay where they lie: the classes that
// protoc generates copy every tensor and cannot be bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::onnx {

// One field of a message.
struct WireField {
    int number = 0;
    enum class Kind : uint8_t { Varint, Fixed64, Bytes, Fixed32 } kind = Kind::Varint;
    uint64_t value = 0;      // of a number; the bits of a fixed one
    std::string_view bytes;  // of Bytes

    // The field as what the message says it is. Error when it is written as something else.
    int64_t as_int() const;
    float as_float() const;
    std::string_view as_bytes() const;
};

// The fields of a message, one after the other.
class WireReader {
  public:
    explicit WireReader(std::string_view bytes) : rest_(bytes) {}
    // False at the end. Error when the bytes end inside a field or are no fields.
    bool next(WireField& field);

  private:
    uint64_t varint();
    std::string_view take(uint64_t count);

    std::string_view rest_;
};

// Repeated numbers, packed into one field or one by one.
void append_ints(const WireField& field, std::vector<int64_t>& values);
void append_floats(const WireField& field, std::vector<double>& values);   // of 32 bits each
void append_doubles(const WireField& field, std::vector<double>& values);  // of 64 bits each

// A message being written.
class WireWriter {
  public:
    void number(int field, int64_t value);
    void real(int field, float value);
    void bytes(int field, std::string_view value);
    // The beginning of a field of `size` bytes, which the caller writes after it.
    void begin_bytes(int field, uint64_t size);
    const std::string& text() const { return text_; }

  private:
    void varint(uint64_t value);
    std::string text_;
};

}  // namespace convoy::onnx
