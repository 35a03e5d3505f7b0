#include "data/npy.h"

#include "data/test_files.h"

namespace convoy {
namespace {

// A version 1 file with this header text, not padded.
std::string npy(const std::string& header, const std::string& data) {
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

std::string header(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
    return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

class NpyTest : public DataFilesTest {
  protected:
    Tensor read(const std::string& bytes) const { return read_npy(put_quickly("x", bytes)); }
    std::string message(const std::string& bytes) const {
        return error_of([&] { read(bytes); });
    }
};

// As NumPy 1.24 writes them.
TEST_F(NpyTest, ReadsWhatNumPyWrites) {
    const std::string dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
    const std::string data("\001\000\376\377\003\000\004\000\005\000\006\000", 12);
    const Tensor expected = Tensor::of<int32_t>({2, 3}, {1, -2, 3, 4, 5, 6});
    EXPECT_EQ(read(std::string("\223NUMPY\001\000v\000", 10) + dictionary + std::string(58, ' ') + "\n" + data), expected);
    EXPECT_EQ(read(std::string("\223NUMPY\002\000t\000\000\000", 12) + dictionary + std::string(56, ' ') + "\n" + data), expected);
    EXPECT_EQ(read(std::string("\223NUMPY\003\000t\000\000\000", 12) + dictionary + std::string(56, ' ') + "\n" + data), expected);
}

TEST_F(NpyTest, FortranOrderIsTransposed) {
    const std::string data("\000\001\002\003\004\005\006\007\010\011\012\013", 12);
    EXPECT_EQ(read(npy(header("|u1", "(2, 6)", "True"), data)), Tensor::of<uint8_t>({2, 6}, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
    EXPECT_EQ(read(npy(header("|u1", "(2, 3, 2)", "True"), data)), Tensor::of<uint8_t>({2, 3, 2}, {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}));
    EXPECT_EQ(read(npy(header("|u1", "(0, 3)", "True"), "")).shape(), (Shape{0, 3}));
}

TEST_F(NpyTest, WidensSmallIntegers) {
    EXPECT_EQ(read(npy(header("|i1", "(2,)"), "\xff\x7f")), Tensor::of<int32_t>({2}, {-1, 127}));
    EXPECT_EQ(read(npy(header("<u2", "(1,)"), "\xff\xff")), Tensor::of<int32_t>({1}, {65535}));
    EXPECT_EQ(read(npy(header("|b1", "(2,)"), std::string("\x00\x02", 2))), Tensor::of<uint8_t>({2}, {0, 1}));
}

TEST_F(NpyTest, RoundTrips) {
    const Tensor values = Tensor::of<double>({2, 1, 3}, {0, 1, 2, 100, 5, 200});
    for (const DType type : {DType::f64, DType::f32, DType::f16, DType::i64, DType::i32, DType::u8}) {
        write_npy(dir_ / "a.npy", values.to(type));
        EXPECT_EQ(read_npy(dir_ / "a.npy"), values.to(type)) << name_of(type);
        EXPECT_EQ((std::filesystem::file_size(dir_ / "a.npy") - static_cast<size_t>(values.to(type).bytes())) % 64, 0u);
    }
    for (const Shape& shape : {Shape{}, Shape{6}, Shape{0, 4}}) {
        write_npy(dir_ / "a.npy", Tensor(shape, DType::f32));
        EXPECT_EQ(read_npy(dir_ / "a.npy"), Tensor(shape, DType::f32));
    }
    EXPECT_THROW(write_npy(dir_ / "b.npy", values.to(DType::bf16)), Error);
    EXPECT_FALSE(std::filesystem::exists(dir_ / "b.npy"));
}

TEST_F(NpyTest, RefusesByName) {
    expect_parts(message("PK\3\4"), {"not an npy file"});
    expect_parts(message(npy(header(">f4", "(1,)"), "abcd")), {"\">f4\"", "big-endian", "<f4"});
    expect_parts(message(npy(header("<c8", "(1,)"), "abcdefgh")), {"\"<c8\""});
    expect_parts(message(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd")), {"structured"});
    expect_parts(message(npy(header("<f4", "(2,)"), "abcd")), {"truncated", "expected 8 bytes", "found 4"});
    expect_parts(message(npy(header("<f4", "(1,)"), "abcdefgh")), {"trailing", "expected 4 bytes", "found 8"});
    expect_parts(message(npy(header("<f4", "(4294967296, 4294967296)"), "abcd")), {"impossible shape"});
    expect_parts(message(npy(header("<f4", "(0, 4294967296, 4294967296)"), "")), {"impossible shape"});
    expect_parts(message(npy(header("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "abcd")), {"at most 8 dims"});
    expect_parts(message(std::string("\x93NUMPY\x04\x00zz", 10)), {"version 4"});
}

TEST_F(NpyTest, RefusesMalformedHeaders) {
    EXPECT_EQ(message(npy(R"({"shape":(1,),"fortran_order":False,"descr":"<f4"})", "abcd")), "");  // any order, either quote, no spaces
    for (const char* bad :
         {"", "{}", "{'descr': '<f4', 'fortran_order': False}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
          "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
          "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}"})
        EXPECT_NE(message(npy(bad, "abcd")), "") << bad;
}

TEST_F(NpyTest, DamageIsRefused) {
    write_npy(dir_ / "a.npy", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    expect_damage_is_refused(read_file(dir_ / "a.npy"), [](const auto& path) { read_npy(path); });
    expect_damage_is_refused(npy(header("<i2", "(3, 2)", "True"), "abcdefghijkl"), [](const auto& path) { read_npy(path); });
}

}  // namespace
}  // namespace convoy
