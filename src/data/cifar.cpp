// CIFAR's binary files: records of one label (CIFAR-100: two) and 3072 bytes, the red, green and blue planes of 32x32 pixels.
#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "data/bytes.h"
#include "data/planar_images.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 32, kPixels = 3 * kSide * kSide;

// One name to a line; empty lines at the end are none.
std::vector<std::string> names_in(const fs::path& file, int64_t classes) {
    if (!fs::exists(file)) return {};
    std::vector<std::string> names;
    std::string line;
    for (const char c : read_file(file) + "\n")
        if (c != '\n') {
            if (c != '\r') line += c;
        } else {
            if (!line.empty()) names.push_back(line);
            line.clear();
        }
    require(static_cast<int64_t>(names.size()) == classes, "{}: expected {} names of classes, found {}", file.string(), classes,
            names.size());
    return names;
}

}  // namespace

std::vector<fs::path> cifar_files(const fs::path& directory, CifarKind kind, Split split) {
    std::vector<fs::path> files;
    const auto add = [&](const std::string& name) {
        std::error_code ignored;
        if (fs::is_regular_file(directory / name, ignored)) files.push_back(directory / name);
    };
    if (kind == CifarKind::Cifar100)
        add(split == Split::Train ? "train.bin" : "test.bin");
    else if (split == Split::Test)
        add("test_batch.bin");
    else
        for (int i = 1; i <= 5; ++i) add(fmt::format("data_batch_{}.bin", i));
    return files;
}

std::unique_ptr<Dataset> open_cifar(const fs::path& directory, CifarKind kind, Split split, const Transform& transform) {
    const bool hundred = kind == CifarKind::Cifar100;
    const int64_t labels_of_each = hundred ? 2 : 1, record = labels_of_each + kPixels, classes = hundred ? 100 : 10;
    const auto files = cifar_files(directory, kind, split);
    require(!files.empty(), "{}: expected {}, found no such file", directory.string(),
            hundred ? (split == Split::Train ? "train.bin" : "test.bin") : (split == Split::Train ? "data_batch_1.bin" : "test_batch.bin"));
    std::vector<MappedFile> mapped;
    int64_t count = 0;
    for (const auto& file : files) {
        mapped.emplace_back(file);
        const auto bytes = static_cast<int64_t>(mapped.back().bytes().size());
        require(bytes > 0 && bytes % record == 0, "{}: expected records of {} bytes, found {} bytes, which is no whole number of them",
                file.string(), record, bytes);
        count += bytes / record;
    }
    Tensor pictures(Shape{count, 3, kSide, kSide}, DType::u8), labels(Shape{count}, DType::i32);
    int64_t sample = 0;
    for (size_t f = 0; f < files.size(); ++f)
        for (std::string_view rest = mapped[f].bytes(); !rest.empty(); rest.remove_prefix(static_cast<size_t>(record)), ++sample) {
            const auto label = static_cast<uint8_t>(rest[static_cast<size_t>(labels_of_each - 1)]);
            require(label < classes, "{}: record {} has label {}; expected labels in 0..{}", files[f].string(),
                    (mapped[f].bytes().size() - rest.size()) / static_cast<size_t>(record), label, classes - 1);
            labels.as<int32_t>()[static_cast<size_t>(sample)] = label;
            std::memcpy(pictures.as<uint8_t>().data() + sample * kPixels, rest.data() + labels_of_each, kPixels);
        }
    DatasetInfo info{.name = hundred ? "cifar100" : "cifar10", .classes = classes};
    info.class_names = names_in(directory / (hundred ? "fine_label_names.txt" : "batches.meta.txt"), classes);
    return make_planar_images(std::move(pictures), std::move(labels), info, transform);
}

}  // namespace convoy
