#include "data/safetensors.h"
#include "base/json.h"

#include "data/test_files.h"

namespace convoy {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
    const auto length = uint64_t{header.size()};
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::vector<NamedTensor> some_tensors() {
    const Tensor values = Tensor::of<double>({2, 2}, {1, 2, 3, 4});
    std::vector<NamedTensor> tensors{{"label", Tensor::of<uint8_t>({3}, {1, 2, 3})},
                                     {"scalar", Tensor::of<float>({}, {0.5f})},
                                     {"none", Tensor(Shape{0, 7}, DType::f32)}};
    for (const DType type : {DType::u8, DType::i32, DType::i64, DType::bf16, DType::f16, DType::f32, DType::f64})
        tensors.push_back({"layer." + std::string(name_of(type)), values.to(type)});
    return tensors;
}

class SafetensorsTest : public DataFilesTest {
  protected:
    std::string message(const std::string& header, const std::string& data) const {
        return error_of([&] { SafetensorsFile(put_quickly("x", file_of(header, data))); });
    }
};

TEST_F(SafetensorsTest, RoundTrips) {
    const auto tensors = some_tensors();
    write_safetensors(dir_ / "a", tensors, {{"step", "12"}, {"a \"quote\"", "\n\xc3\xa9"}});
    const SafetensorsFile file(dir_ / "a");
    EXPECT_EQ(file.names().size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
        EXPECT_TRUE(file.contains(name));
        EXPECT_EQ(file.shape(name), tensor.shape());
        EXPECT_EQ(file.dtype(name), tensor.dtype());
        EXPECT_EQ(file.read(name), tensor) << name;
        EXPECT_EQ(file.bytes(name).size(), static_cast<size_t>(tensor.bytes()));
    }
    EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"step", "12"}, {"a \"quote\"", "\n\xc3\xa9"}}));
    EXPECT_FALSE(file.contains("nothing"));
    expect_parts(error_of([&] { file.read("layer.f46"); }), {"/a:", "\"layer.f46\"", "did you mean"});
}

TEST_F(SafetensorsTest, BytesAreDeterministicAndAligned) {
    auto tensors = some_tensors();
    write_safetensors(dir_ / "a", tensors, {{"k", "v"}});
    std::reverse(tensors.begin(), tensors.end());
    write_safetensors(dir_ / "b", tensors, {{"k", "v"}});
    const std::string bytes = read_file(dir_ / "a");
    EXPECT_EQ(bytes, read_file(dir_ / "b"));
    EXPECT_EQ(load_little<uint64_t>(bytes.data()) % 8, 0u);
    const SafetensorsFile file(dir_ / "a");
    for (const auto& name : file.names())
        EXPECT_EQ(reinterpret_cast<uintptr_t>(file.bytes(name).data()) % static_cast<uintptr_t>(size_of(file.dtype(name))), 0u) << name;
}

TEST_F(SafetensorsTest, KnownBytes) {
    write_safetensors(dir_ / "a", std::vector<NamedTensor>{{"w", Tensor::of<float>({1, 2}, {1, -2})}});
    const std::string header = R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
    EXPECT_EQ(header.size() % 8, 0u);
    EXPECT_EQ(read_file(dir_ / "a"), file_of(header, std::string("\0\0\x80\x3f\0\0\0\xc0", 8)));
    write_safetensors(dir_ / "a", std::vector<NamedTensor>{});
    EXPECT_TRUE(SafetensorsFile(dir_ / "a").names().empty());
}

TEST_F(SafetensorsTest, WriterRefuses) {
    const Tensor t(Shape{2}, DType::f32);
    const auto error = [&](const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& metadata = {}) {
        return error_of([&] { write_safetensors(dir_ / "a", tensors, metadata); });
    };
    expect_parts(error({{"w", t}, {"v", t}, {"w", t.to(DType::u8)}}), {"\"w\"", "twice"});
    expect_parts(error({{"__metadata__", t}}), {"__metadata__"});
    expect_parts(error({{"\xff", t}}), {"UTF-8"});
    expect_parts(error({{"w", t}}, {{"k", "\xff"}}), {"UTF-8"});
    EXPECT_FALSE(std::filesystem::exists(dir_ / "a"));
}

TEST_F(SafetensorsTest, ForeignTypesAreRefusedWhenRead) {
    const std::string header =
        R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}  )";
    const SafetensorsFile file(put("x", file_of(header, "abc")));
    EXPECT_EQ(file.read("b"), Tensor::of<uint8_t>({1}, {'c'}));
    EXPECT_EQ(file.shape("a"), Shape{2});
    expect_parts(error_of([&] { file.read("a"); }), {"\"a\"", "I8", "not supported"});
    expect_parts(message(R"({"a":{"dtype":"Q8","shape":[2],"data_offsets":[0,2]}})", "ab"), {"/x:", "\"a\"", "unknown dtype", "Q8"});
}

TEST_F(SafetensorsTest, LayoutOfTheDataIsChecked) {
    const auto two = [](const char* a, const char* b) {
        return fmt::format(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":{}}},"b":{{"dtype":"U8","shape":[2],"data_offsets":{}}}}})",
                           a, b);
    };
    EXPECT_EQ(message(two("[2,4]", "[0,2]"), "abcd"), "");
    expect_parts(message(two("[0,2]", "[3,5]"), "abcde"), {"\"b\"", "hole at 2"});
    expect_parts(message(two("[1,3]", "[3,5]"), "abcde"), {"\"a\"", "hole at 0"});
    expect_parts(message(two("[0,2]", "[1,3]"), "abc"), {"\"b\"", "overlap at 1"});
    expect_parts(message(two("[0,2]", "[2,4]"), "abcde"), {"trailing", "cover 4", "found 5"});
    expect_parts(message(two("[0,2]", "[2,4]"), "abc"), {"\"b\"", "not inside the 3 bytes"});
    expect_parts(message(two("[2,0]", "[2,4]"), "abcd"), {"\"a\"", "not inside"});
    expect_parts(message(two("[0,3]", "[3,5]"), "abcde"), {"\"a\"", "expected 2 bytes", "3 bytes"});
}

TEST_F(SafetensorsTest, HeadersAreChecked) {
    const auto one = [](const std::string& entry) { return "{\"t\":" + entry + "}"; };
    EXPECT_EQ(message(one(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})"), "ab"), "");
    expect_parts(
        message(R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab"),
        {"\"t\"", "twice"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2],"dtype":"U8"})"), "ab"), {"dtype", "twice"});
    expect_parts(message(one(R"({"shape":[2],"data_offsets":[0,2]})"), "ab"), {"dtype is missing"});
    expect_parts(message(one(R"({"dtype":"U8","data_offsets":[0,2]})"), "ab"), {"shape is missing"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[2]})"), "ab"), {"data_offsets is missing"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[2],"data_offsets":[0]})"), "ab"), {"two data_offsets"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2,2]})"), "ab"), {"two data_offsets"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[-2],"data_offsets":[0,2]})"), "ab"), {"\"t\"", "negative"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[2.0],"data_offsets":[0,2]})"), "ab"), {"\"t\"", "not a 64-bit integer"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,2]})"), "ab"), {"too large"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,2]})"), "ab"), {"impossible shape"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,2]})"), "ab"), {"at most 8 dims"});
    expect_parts(message(one(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2],"extra":1})"), "ab"), {"unknown field", "extra"});
    expect_parts(message(one("[1]"), "ab"), {"\"t\"", "an array"});
    expect_parts(message(one("null"), "ab"), {"\"t\"", "null"});
    expect_parts(message("[]", ""), {"begin with {"});
    expect_parts(message(" {}", ""), {"begin with {"});
    expect_parts(message("{}{}", ""), {"not valid JSON"});
    expect_parts(message(R"({"__metadata__":{"a":1}})", ""), {"__metadata__", "\"a\"", "a number"});
    expect_parts(message(R"({"__metadata__":{"a":"1","a":"2"}})", ""), {"\"a\"", "twice"});
    expect_parts(message(R"({"__metadata__":"a"})", ""), {"__metadata__", "an object of strings"});
    expect_parts(message("{\"__metadata__\":" + std::string(100000, '['), ""), {"an object of strings", "an array"});
}

TEST_F(SafetensorsTest, LengthsAreChecked) {
    const auto error = [&](const std::string& bytes) { return error_of([&] { SafetensorsFile(put_quickly("x", bytes)); }); };
    expect_parts(error("abc"), {"at least 8 bytes", "found 3"});
    expect_parts(error(std::string("\0\0\0\0\0\0\0\1{}", 10)), {"limit is 100000000"});
    expect_parts(error(std::string("\3\0\0\0\0\0\0\0{}", 10)), {"truncated", "expected 3", "found 2"});
    expect_parts(error_of([&] { SafetensorsFile(dir_ / "none"); }), {"none", "No such file"});
}

TEST_F(SafetensorsTest, DamageIsRefused) {
    write_safetensors(dir_ / "a",
                      std::vector<NamedTensor>{{"w", Tensor::of<float>({1, 2}, {1, -2})}, {"l", Tensor::of<uint8_t>({3}, {1, 2, 3})}},
                      {{"k", "v"}});
    expect_damage_is_refused(read_file(dir_ / "a"), [](const auto& path) {
        const SafetensorsFile file(path);
        for (const auto& name : file.names()) file.read(name);
    });
}

}  // namespace
}  // namespace convoy
