// Writing optional fields, and reading a JSON object field by field, with errors that name the field. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"

namespace convoy {

// Adds a field where there is a value.
void put(Json& json, const char* name, const std::optional<double>& value);

class Fields {
  public:
    // `where` begins every message: a file, or a field of another object. Error when `json` is no object. It must outlive this.
    Fields(const Json& json, std::string where);

    // Reads the field into `value`, which keeps what it has when there is none. Error when it is of another type or does not fit into it.
    void read(const char* name, bool& value);
    void read(const char* name, int& value);
    void read(const char* name, int64_t& value);
    void read(const char* name, uint64_t& value);
    void read(const char* name, double& value);
    void read(const char* name, std::string& value);
    void read(const char* name, std::optional<double>& value);  // null: nothing
    void read(const char* name, std::vector<int64_t>& value);
    void read(const char* name, std::vector<std::string>& value);
    // The same for what is written as a name; `parse` gives the value of one or throws Error.
    template <class T, class F>
    void read_named(const char* name, T& value, F&& parse);
    // The same for an object; `parse(json, where)` gives its value.
    template <class T, class F>
    void read_object(const char* name, T& value, F&& parse);

    // Error unless the field is there.
    void require_field(const char* name) const;
    // Error when there is a field that nobody asked for, with a suggestion.
    void finish() const;

    std::string place(const char* name) const { return where_ + ": field \"" + name + "\""; }

  private:
    const Json* find(const char* name);
    [[noreturn]] void refuse(const char* name, const char* expected, const Json& found) const;

    const Json& json_;
    std::string where_;
    std::vector<std::string> known_;
};

template <class T, class F>
void Fields::read_named(const char* name, T& value, F&& parse) {
    std::string text;
    if (!find(name)) return;
    read(name, text);
    try {
        value = parse(text);
    } catch (const Error& error) {
        fail("{}: {}", place(name), error.what());
    }
}

template <class T, class F>
void Fields::read_object(const char* name, T& value, F&& parse) {
    if (const Json* json = find(name)) value = parse(*json, place(name));
}

}  // namespace convoy
