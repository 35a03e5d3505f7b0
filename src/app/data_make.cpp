// `data make`: sets to try things on, with a real signal to learn. Every sample depends on the seed and its number alone.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/file.h"
#include "base/json.h"
#include "data/hdf5/hdf5.h"
#include "data/jpeg/jpeg.h"
#include "data/make/cells.h"
#include "data/make/fields.h"
#include "data/make/shapes.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

struct MakeArguments {
    CommonOptions common;
    std::string kind, path;
    int64_t train = 0, test = 0, size = 0, channels = 0, quality = 0;  // 0: as usual
    uint64_t seed = 1;
    int threads = 0;
};

// A set: how many samples by default, and how one is written. Samples of the test split have numbers of their own, far from the others.
struct Kind {
    int64_t train, test, size;
    std::function<void(const fs::path& split, int64_t number, uint64_t index)>
        write;                         // the number within the split; the index that decides the sample
    std::vector<fs::path> folders;     // inside a split
    std::vector<std::string> classes;  // for classes.txt; folders name theirs
};

constexpr uint64_t kTestBegin = uint64_t{1} << 31;

fs::path numbered(const fs::path& folder, int64_t number, const char* extension) {
    return folder / fmt::format("{:06}.{}", number, extension);
}

Kind shapes(const MakeArguments& arguments, int64_t size) {
    const ShapeOptions options{.size = size, .seed = arguments.seed};
    require_valid(options);
    Kind kind{.train = 600, .test = 150, .size = size};
    for (const std::string_view name : kShapeClasses) kind.folders.emplace_back(name);
    kind.write = [options, quality = arguments.quality > 0 ? static_cast<int>(arguments.quality) : 90](const fs::path& split,
                                                                                                       int64_t number, uint64_t index) {
        const size_t shape = static_cast<size_t>(number) % kShapeClasses.size();
        const Pixels pixels = make_shape(options, shape, index);
        write_file(numbered(split / kShapeClasses[shape], number / static_cast<int64_t>(kShapeClasses.size()), "jpg"),
                   encode_jpeg(pixels, quality));
    };
    return kind;
}

Kind fields(const MakeArguments& arguments, int64_t size) {
    const FieldOptions options{.size = size, .channels = std::max<int64_t>(1, arguments.channels), .seed = arguments.seed};
    require_valid(options);
    Kind kind{.train = 192, .test = 48, .size = size};
    kind.write = [options](const fs::path& split, int64_t number, uint64_t index) {
        const FieldSample sample = make_field(options, index);
        Hdf5Writer file(numbered(split, number, "h5"));
        file.write("x", sample.x);
        file.write("y", sample.y);
        file.commit();
    };
    return kind;
}

Kind cells(const MakeArguments& arguments, int64_t size) {
    const CellOptions options{.size = size, .seed = arguments.seed};
    require_valid(options);
    Kind kind{.train = 64, .test = 16, .size = size};
    for (const char* name : kCellClassNames) kind.classes.emplace_back(name);
    kind.write = [options](const fs::path& split, int64_t number, uint64_t index) {
        const CellSample sample = make_cells(options, index);
        Hdf5Writer file(numbered(split, number, "h5"));
        file.write("x", sample.x);
        file.write("y", sample.y);
        file.attribute("y", "classes", kCellClasses);
        file.commit();
    };
    return kind;
}

Kind kind_named(const MakeArguments& arguments) {
    const auto size = [&](int64_t usual) { return arguments.size > 0 ? arguments.size : usual; };
    if (arguments.kind == "shapes") return shapes(arguments, size(128));
    if (arguments.kind == "fields") return fields(arguments, size(64));
    return cells(arguments, size(32));
}

// Runs fn(i) for i in 0..count-1 on some threads; shows how far it is. The first Error stops all of them.
void in_parallel(int64_t count, int threads, const Output& output, const std::function<void(int64_t)>& fn) {
    std::atomic<int64_t> next{0}, done{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex mutex;
    const auto work = [&] {
        try {
            for (int64_t i = next++; i < count && !stop; i = next++) {
                fn(i);
                ++done;
            }
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
            stop = true;
        }
    };
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) workers.emplace_back(work);
    const bool terminal = isatty(fileno(output.stream())) == 1;
    while (terminal && done < count && !stop) {
        output.write(fmt::format("\r{} of {} samples\x1b[K", grouped(done), grouped(count)));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    for (std::thread& worker : workers) worker.join();
    if (terminal) output.write("\r\x1b[K");
    if (failure) std::rethrow_exception(failure);
}

void require_empty(const fs::path& path) {
    std::error_code failed;
    if (!fs::exists(path, failed)) return;
    require(fs::is_directory(path, failed) && fs::is_empty(path, failed), "{} exists and is not empty; data are only made in a new place",
            path.string());
}

int64_t bytes_under(const fs::path& path) {
    int64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path))
        if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
    return bytes;
}

int data_make(const MakeArguments& arguments) {
    const Output output(arguments.common.json);
    if (arguments.channels > 0 && arguments.kind != "fields")
        throw UsageError(fmt::format("--channels is for fields; how many {} have is fixed", arguments.kind));
    if (arguments.quality > 0 && arguments.kind != "shapes")
        throw UsageError(fmt::format("--quality is for shapes, which are JPEG files; {} are HDF5", arguments.kind));
    const Kind kind = kind_named(arguments);
    const fs::path root = arguments.path;
    require_empty(root);
    const int64_t train = arguments.train > 0 ? arguments.train : kind.train, test = arguments.test > 0 ? arguments.test : kind.test;
    for (const char* split : {"train", "test"}) {
        fs::create_directories(root / split);
        for (const fs::path& folder : kind.folders) fs::create_directories(root / split / folder);
    }
    if (!kind.classes.empty()) write_file(root / "classes.txt", fmt::format("{}\n", fmt::join(kind.classes, "\n")));
    const int threads = arguments.threads > 0 ? arguments.threads : std::max(1u, std::thread::hardware_concurrency());
    in_parallel(train + test, threads, output, [&](int64_t i) {
        if (i < train)
            kind.write(root / "train", i, static_cast<uint64_t>(i));
        else
            kind.write(root / "test", i - train, kTestBegin + static_cast<uint64_t>(i - train));
    });
    const int64_t bytes = bytes_under(root);
    output.line("{}: {} samples to train on, {} to test, {} in all; seed {}", root.string(), grouped(train), grouped(test),
                short_bytes(static_cast<double>(bytes)), arguments.seed);
    output.result({{"kind", arguments.kind},
                   {"path", root.string()},
                   {"train", train},
                   {"test", test},
                   {"size", kind.size},
                   {"bytes", bytes},
                   {"seed", arguments.seed}});
    return 0;
}

}  // namespace

Command add_data_make(Parser& group) {
    Parser* const parser = group.add_subcommand("make", "Make a dataset to try things on");
    const auto arguments = std::make_shared<MakeArguments>();
    MakeArguments& a = *arguments;
    describe(*parser,
             "Make a dataset with a real signal to learn, with a train and a test split.\n"
             "  shapes  pictures of a ball, a box or a cone, as JPEG files in a folder for each class\n"
             "  fields  3D Gaussian random fields (HDF5); four numbers that shape their power spectrum are to be found\n"
             "  cells   3D volumes (HDF5) with a class for every voxel: background, cell, nucleus\n"
             "A sample depends on the seed and its number alone: more of them, or another machine, gives the same ones.",
             "  convoy data make shapes data/shapes\n"
             "  convoy data make fields data/fields --size 64 --train 256 --test 64\n"
             "  convoy data make cells data/cells --size 32 && convoy train unet3d --data data/cells --batch 2");
    allow_only(parser->add_option("KIND", a.kind, "shapes, fields or cells")->option_text(" ")->required(), {"shapes", "fields", "cells"});
    parser->add_option("PATH", a.path, "Where to: a directory that is new or empty")->option_text(" ")->required();
    allow_whole(parser->add_option("--train", a.train, "Samples to train on (default: shapes 600, fields 192, cells 64)")->option_text("N"),
                1);
    allow_whole(parser->add_option("--test", a.test, "Samples to test on (default: shapes 150, fields 48, cells 16)")->option_text("N"), 1);
    allow_whole(
        parser->add_option("--size", a.size, "Pixels of the shorter side, or voxels of each side (default: 128, 64, 32)")->option_text("S"),
        1);
    allow_whole(parser->add_option("--channels", a.channels, "Of fields: ages of the same waves (default: 1)")->option_text("C"), 1);
    allow_whole(parser->add_option("--quality", a.quality, "Of shapes: JPEG's, 1 to 100 (default: 90)")->option_text("Q"), 1, 100);
    allow_whole(parser->add_option("--seed", a.seed, "(default: 1)")->option_text("N"), 0, kMostWhole);
    allow_whole(parser->add_option("--threads", a.threads, "(default: all cores)")->option_text("N"), 1, kMostThreads);
    add_json(*parser, a.common);
    return {parser, [arguments] { return data_make(*arguments); }};
}

}  // namespace convoy
