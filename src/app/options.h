// Options that many commands share, and what they mean to the rest.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "exec/session.h"
#include "model/model.h"
#include "onnx/model_source.h"

namespace convoy {

class Option;
class Parser;

// The command line is to blame: exit code 2.
class UsageError : public Error {
  public:
    using Error::Error;
};

struct CommonOptions {
    std::string json;     // a file, "-" or "" for none
    int threads = 0;      // 0: all cores that the process may use
    std::string backend;  // empty: the best that is ready
    std::string dtype = "f32";
    int device = 0;
    uint64_t seed = 1;
    std::string input;    // "3x64x64"; empty: the model's own
    int64_t classes = 0;  // 0: the model's own
    int64_t batch = 0;    // 0: the command's default
};

// --json alone, for commands that compute nothing.
void add_json(Parser& parser, CommonOptions& options);
// All of them. `batch` says what the batch is when it is not given, for the help text.
void add_common(Parser& parser, CommonOptions& options, const std::string& batch);
// The positional argument MODEL.
Option* add_model(Parser& parser, std::string& model);
// Options that only some commands have.
void add_weights(Parser& parser, std::string& weights);
Option* add_optimizer(Parser& parser, std::string& optimizer);
Option* add_micro_batches(Parser& parser, int& micro_batches);
// A paragraph on what the command is for, whose first line stands alone in the list of commands, and examples, one to a line.
void describe(Parser& parser, const std::string& purpose, const std::string& examples);
// Refuses a value of the option that is not one of these, with a suggestion.
void allow_only(Option* option, const std::vector<std::string>& known);
// Refuses what is not a whole number from `low` to `high`. A thousand million of anything is more than any machine has, and fits an int;
// numbers that may be larger (seeds, bytes) say so.
inline constexpr int64_t kMany = 1'000'000'000, kMostWhole = 999'999'999'999'999'999;
void allow_whole(Option* option, int64_t low, int64_t high = kMany);
// Threads of one process: more are a slip of the finger.
inline constexpr int kMostThreads = 4096;
// Refuses what is not a number from `low` to `high`; with `open`, `low` itself too.
struct RealRange {
    double low, high = std::numeric_limits<double>::max();
    bool open = false;
};
void allow_real(Option* option, const RealRange& range);

// The best backend that is ready here and computes in this type: a GPU before the processor before the reference.
struct BackendChoice {
    std::string name;
    std::string passed_over = {};  // why a GPU that is here is not used; empty: it is, or there is none
};
// `device` as --device says. Error when there is none.
BackendChoice best_backend(DType dtype, int device = 0);
// Warns when a GPU that is here is passed over.
SessionOptions session_options(const CommonOptions& options);
// The model's shape options; the batch is `batch` where --batch was not given.
ModelOptions model_options(const CommonOptions& options, Mode mode, int64_t batch);
// The model of that name or in that file; UsageError with a suggestion when there is none, Error when the file cannot be used.
ModelSource known_model(const std::string& name);

}  // namespace convoy
