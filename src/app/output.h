// Where a command's words and its result go: text for people on standard output, the result as JSON where --json says. When that is standard
// output itself, text for people moves to standard error.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json_fwd.h"

namespace convoy {

// A file that a command reads or writes, and the option that names it. No path and "-" are no file.
struct NamedFile {
    std::string option, path;
};
// Before the work: Error when a file cannot be written; UsageError when one would be written twice, or over one that is read.
void expect_files(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read = {});

class Output {
  public:
    // `json` is a file's path, "-" or "" for none. Error when the file cannot be written, now rather than after the work is done. One that is `silent`
    // says and writes nothing: of several processes only one speaks.
    explicit Output(std::string json, bool silent = false);

    // For people.
    std::FILE* stream() const { return json_ == "-" ? stderr : stdout; }
    void write(std::string_view text) const;
    template <class... Args>
    void line(fmt::format_string<Args...> text, Args&&... args) const {
        write(fmt::format(text, std::forward<Args>(args)...) + "\n");
    }

    // The whole document, or none: a file is replaced in one step.
    void result(const Json& document) const;

  private:
    std::string json_;
    bool silent_;
};

}  // namespace convoy
