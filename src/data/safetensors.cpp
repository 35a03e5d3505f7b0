#include "data/safetensors.h"

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/suggest.h"
#include "data/safetensors_header.h"

namespace convoy {

namespace {

std::string json_string(std::string_view text, const std::string& file) {
    try {
        return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
        fail("{}: {} is not valid UTF-8, which safetensors requires", file, in_quotes(text));
    }
}

std::string header_text(std::span<const NamedTensorView> ordered, const std::map<std::string, std::string>& metadata,
                        const std::string& file) {
    std::vector<std::string> parts;
    if (!metadata.empty()) {
        std::vector<std::string> pairs;
        for (const auto& [key, value] : metadata) pairs.push_back(json_string(key, file) + ':' + json_string(value, file));
        parts.push_back(fmt::format("\"{}\":{{{}}}", kMetadataKey, fmt::join(pairs, ",")));
    }
    int64_t offset = 0;
    for (const auto& [name, tensor] : ordered) {
        const Shape& shape = tensor->shape();
        parts.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json_string(name, file),
                                    safetensors_type(tensor->dtype())->name, fmt::join(shape.begin(), shape.end(), ","), offset,
                                    offset + tensor->bytes()));
        offset += tensor->bytes();
    }
    std::string text = fmt::format("{{{}}}", fmt::join(parts, ","));
    text.append((8 - text.size() % 8) % 8, ' ');
    require(static_cast<int64_t>(text.size()) <= kMostHeaderBytes,
            "{}: the safetensors header would have {} bytes; the format's limit is {}", file, text.size(), kMostHeaderBytes);
    return text;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path.string()), file_(path) {
    const std::string_view bytes = file_.bytes();
    require(bytes.size() >= 8, "{}: truncated: a safetensors file has at least 8 bytes, found {}", path_, bytes.size());
    const auto length = load_little<uint64_t>(bytes.data());
    require(length <= uint64_t{kMostHeaderBytes}, "{}: not a safetensors file: its header would have {} bytes; the format's limit is {}",
            path_, length, kMostHeaderBytes);
    require(length <= bytes.size() - 8, "{}: truncated: expected {} bytes of header, found {}", path_, length, bytes.size() - 8);
    const std::string_view data = bytes.substr(8 + length);
    SafetensorsHeader header = parse_safetensors_header(bytes.substr(8, length), static_cast<int64_t>(data.size()), path_);
    metadata_ = std::move(header.metadata);
    for (const auto& e : header.entries) {
        names_.push_back(e.name);
        entries_[e.name] = {e.type->name, e.shape, data.substr(static_cast<size_t>(e.begin), static_cast<size_t>(e.end - e.begin))};
    }
}

const SafetensorsFile::Entry& SafetensorsFile::entry(std::string_view name) const {
    const auto found = entries_.find(name);
    require(found != entries_.end(), "{}: no tensor {} among its {}{}", path_, in_quotes(name), names_.size(), did_you_mean(name, names_));
    return found->second;
}

DType SafetensorsFile::dtype(std::string_view name) const {
    const std::string_view type = entry(name).type;
    const auto dtype = safetensors_type(type)->dtype;
    require(dtype.has_value(), "{}: tensor {}: elements of {} are not supported; expected F64, F32, F16, BF16, I64, I32 or U8", path_,
            in_quotes(name), type);
    return *dtype;
}

std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
    static_cast<void>(dtype(name));  // refuses what nobody here could interpret
    const std::string_view data = entry(name).data;
    return {reinterpret_cast<const std::byte*>(data.data()), data.size()};
}

Tensor SafetensorsFile::read(std::string_view name) const {
    Tensor tensor(shape(name), dtype(name));
    const auto data = bytes(name);
    std::copy(data.begin(), data.end(), tensor.data());
    return tensor;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
    const std::string file = path.string();
    std::vector<NamedTensorView> ordered(tensors.begin(), tensors.end());
    for (const auto& [name, tensor] : ordered) {
        CONVOY_CHECK(tensor && tensor->data(), "writing tensor {} without elements to {}", in_quotes(name), file);
        require(name != kMetadataKey, "{}: a tensor cannot be named {}", file, kMetadataKey);
        require(safetensors_type(tensor->dtype()) != nullptr, "{}: tensor {}: safetensors has no type for {}", file, in_quotes(name),
                name_of(tensor->dtype()));
    }
    std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
        const int64_t left = size_of(a.tensor->dtype()), right = size_of(b.tensor->dtype());
        return left != right ? left > right : a.name < b.name;
    });
    std::vector<std::string_view> names;
    for (const auto& t : ordered) names.push_back(t.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    require(twice == names.end(), "{}: tensor {} is given twice", file, twice == names.end() ? "" : in_quotes(*twice));

    const std::string header = header_text(ordered, metadata, file);
    const auto length = uint64_t{header.size()};
    AtomicFile out(path);
    out.write({reinterpret_cast<const char*>(&length), sizeof length});
    out.write(header);
    for (const auto& t : ordered) out.write({reinterpret_cast<const char*>(t.tensor->data()), static_cast<size_t>(t.tensor->bytes())});
    out.commit();
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
    std::vector<NamedTensorView> views;
    for (const auto& t : tensors) views.push_back({t.name, &t.tensor});
    write_safetensors(path, std::span<const NamedTensorView>(views), metadata);
}

}  // namespace convoy
