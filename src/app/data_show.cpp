// Says what a dataset is, and draws a few of its samples.

#include "app/command.h"
#include "app/contact_sheet.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/json.h"
#include "data/open_dataset.h"

namespace convoy {

namespace {

struct ShowArguments {
    CommonOptions common;
    std::string data, split = "train", output;
    int64_t count = 24, classes = 0;
    bool augmented = false, strict = false;
};

std::unique_ptr<Dataset> open(const ShowArguments& a, Split split, const DatasetOptions& options) {
    require(a.data != "synthetic", "dataset \"synthetic\" is made for a model; there is nothing to show");
    return open_dataset(a.data, split, options);
}

int show(const ShowArguments& a) {
    const Output output(a.common.json);
    expect_files({{"--output", a.output}, {"--json", a.common.json}}, {{"DATA", a.data}});
    const DataKind kind = dataset_kind(a.data);
    DatasetOptions options;
    options.classes = a.classes;
    options.strict = a.strict;
    const auto train = open(a, Split::Train, options), test = open(a, Split::Test, options);
    const DatasetInfo& info = train->info();
    output.line("{}: {}, {}", a.data, name_of(kind), targets_text(info));
    output.line("{} samples to train on, {} to test; a network sees {}", grouped(train->size()), grouped(test->size()),
                to_string(info.input));
    const auto words = [](const std::string& text) { return text.empty() ? "as they are" : text; };
    output.line("training: {}; testing: {}", words(info.transforms), words(test->info().transforms));
    output.line("for example:");
    Json examples = Json::array();
    for (const int64_t index : spread(train->size(), 4)) {
        examples.push_back(train->describe(index));
        output.line("  {}", train->describe(index));
    }
    Json document{{"data", a.data},
                  {"kind", name_of(kind)},
                  {"train_samples", train->size()},
                  {"test_samples", test->size()},
                  {"input", to_string(info.input)},
                  {"target", name_of(info.target)},
                  {"classes", info.classes},
                  {"class_names", info.class_names},
                  {"train_transforms", info.transforms},
                  {"test_transforms", test->info().transforms},
                  {"examples", examples}};
    if (!a.output.empty()) {
        constexpr int kSide = 128;
        // Pictures in files are cut as for testing, so that the sheet shows what they are and not what chance made of them.
        options.plain = !a.augmented;
        options.normalize = "none";
        if (any_size(kind)) options.size = {kSide, kSide};
        const auto shown = open(a, a.split == "test" ? Split::Test : Split::Train, options);
        write_png(a.output, contact_sheet(*shown, {.count = a.count, .side = kSide}));
        const auto skipped = shown->skipped();
        for (const SkippedSample& bad : skipped) output.line("skipped: {}", bad.why);
        document["skipped"] = skipped.size();
        document["sheet"] = a.output;
        output.line("{} samples of the {} split are in {}", std::min(a.count, shown->size()), a.split, a.output);
    }
    output.result(document);
    return 0;
}

}  // namespace

Command add_data_show(Parser& data) {
    Parser* const parser = data.add_subcommand("show", "");
    describe(*parser,
             "Say what a dataset is, and draw a few of its samples.\n"
             "What kind it is is seen from the files: pictures in a folder for each class, IDX, CIFAR, npy, npz, HDF5 or tar shards. With "
             "--output a sheet of\n"
             "samples is drawn, with their classes; volumes as slices, labels of voxels as colours.",
             "  convoy data show mnist --output sheet.png\n"
             "  convoy data show photos --output sheet.png --count 40\n"
             "  convoy data show fields --split test --json -");
    const auto a = std::make_shared<ShowArguments>();
    parser->add_option("DATA", a->data, "mnist, or the path of a dataset")->option_text(" ")->required();
    parser->add_option("--output,-o", a->output, "Draw a sheet of samples into this PNG file")->option_text("FILE");
    allow_only(parser->add_option("--split", a->split, "Of which to draw samples: train or test (default: train)")->option_text("SPLIT"),
               {"train", "test"});
    allow_whole(parser->add_option("--count", a->count, "Samples on the sheet (default: 24)")->option_text("N"), 1, 4096);
    allow_whole(parser->add_option("--classes", a->classes, "Classes (default: as the files say)")->option_text("K"), 1);
    parser->add_flag("--augmented", a->augmented, "Draw them as training sees them, with random crops and flips");
    parser->add_flag("--strict", a->strict, "Pictures that cannot be read are an error");
    add_json(*parser, a->common);
    return {parser, [a] { return show(*a); }};
}

}  // namespace convoy
