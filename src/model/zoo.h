// The models known by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace convoy {

struct ZooEntry {
    std::string name;
    std::string summary;                                                // one line for a person
    Shape input;                                                        // default input without N
    int64_t classes;                                                    // default classes or outputs
    Model (*make)(const ZooEntry& entry, const ModelOptions& options);  // options complete: no zero, no empty
    std::vector<std::string> training_only = {};                        // names of layers that exist only in training mode begin so
};

// In the order in which a person would read them.
const std::vector<ZooEntry>& zoo();

// The entry of that name; Error with a suggestion when there is none.
const ZooEntry& zoo_entry(std::string_view name);

// Builds the model. Error when the name is unknown or the input shape does not fit, naming the layer.
Model make_model(std::string_view name, const ModelOptions& options);

}  // namespace convoy
