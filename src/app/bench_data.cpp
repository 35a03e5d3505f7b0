// How fast samples are read, decoded and transformed, without a network.
#include <chrono>

#include "app/command.h"
#include "app/machine.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/json.h"
#include "data/open_dataset.h"
#include "data/prefetch.h"

namespace convoy {

namespace {

struct BenchDataArguments {
    CommonOptions common;
    std::string data, augment, normalize, input, split = "train";
    int64_t batch = 64, resize = 0;
    int workers = 0;
    double seconds = 5;
    bool strict = false;
};

int bench(const BenchDataArguments& a) {
    const Output output(a.common.json);
    DatasetOptions options;
    options.augment = a.augment;
    options.normalize = a.normalize;
    options.resize = a.resize;
    options.seed = a.common.seed;
    options.strict = a.strict;
    if (!a.input.empty()) options.size = parse_dims(a.input).slice(1);
    require(a.data != "synthetic", "dataset \"synthetic\" is made for a model; there is nothing to read");
    const auto dataset = open_dataset(a.data, a.split == "test" ? Split::Test : Split::Train, options);
    const int workers = a.workers > 0 ? a.workers : usable_cores();
    const BatchOrder order(dataset->size(), a.batch, a.common.seed, true);
    Prefetcher batches(*dataset, order, {.workers = workers});
    batches.next();  // memory is touched, threads run
    const auto begin = std::chrono::steady_clock::now();
    int64_t samples = 0, bytes = 0;
    double seconds = 0;
    while (seconds < a.seconds) {
        const Batch* const batch = batches.next();
        samples += batch->count;
        bytes += batch->bytes;
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    const double rate = static_cast<double>(samples) / seconds;
    output.line("{}: {} samples/s with {} thread{} ({}/s from files); {}", a.data, grouped(static_cast<int64_t>(rate)), workers,
                workers == 1 ? "" : "s", short_bytes(static_cast<double>(bytes) / seconds), dataset->info().transforms);
    output.result({{"data", a.data},
                   {"samples", samples},
                   {"seconds", seconds},
                   {"samples_per_s", rate},
                   {"bytes_per_s", static_cast<double>(bytes) / seconds},
                   {"workers", workers},
                   {"input", to_string(dataset->info().input)},
                   {"transforms", dataset->info().transforms},
                   {"skipped", dataset->skipped().size()}});
    return 0;
}

}  // namespace

Command add_bench_data(Parser& group) {
    Parser* const parser = group.add_subcommand("data", "");
    describe(*parser,
             "Measure how fast samples are read.\n"
             "Files are read, decoded and transformed as `train` does it, in a random order, but nothing is computed with them.",
             "  convoy bench data photos --data-workers 2\n"
             "  convoy bench data photos --augment none --input 3x224x224 --json -");
    const auto a = std::make_shared<BenchDataArguments>();
    parser->add_option("DATA", a->data, "mnist, or the path of a dataset")->option_text(" ")->required();
    allow_only(parser->add_option("--split", a->split, "train or test (default: train)")->option_text("SPLIT"), {"train", "test"});
    parser->add_option("--augment", a->augment, "As for `train`")->option_text("LIST");
    parser->add_option("--normalize", a->normalize, "As for `train`")->option_text("WHAT");
    parser->add_option("--input", a->input, "Shape of a sample, such as 3x224x224")->option_text("SHAPE");
    allow_whole(parser->add_option("--resize", a->resize, "As for `train`")->option_text("R"), 1);
    allow_whole(parser->add_option("--batch", a->batch, "Samples in a batch (default: 64)")->option_text("B"), 1);
    allow_whole(parser->add_option("--data-workers", a->workers, "Threads (default: all cores that the process may use)")->option_text("N"),
                1, kMostThreads);
    allow_whole(parser->add_option("--seed", a->common.seed, "Seed of all random numbers (default: 1)")->option_text("S"), 0, kMostWhole);
    allow_real(parser->add_option("--seconds", a->seconds, "How long to measure (default: 5)")->option_text("S"),
               {.low = 0, .high = 3600, .open = true});
    parser->add_flag("--strict", a->strict, "A picture that cannot be read is an error");
    add_json(*parser, a->common);
    return {parser, [a] { return bench(*a); }};
}

}  // namespace convoy
