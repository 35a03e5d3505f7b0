// Where models come from: the zoo, by name, or an ONNX file, by its path. Everything that takes a model takes it from here, so that no command knows the
// difference.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace convoy {

struct ModelSource {
    std::string name;                                // as it was asked for
    std::string summary;                             // one line for a person
    Shape input;                                     // default input without N; a size of 0 is one that the file leaves open
    int64_t classes = 0;                             // default classes or outputs; 0: not known before an input's shape is
    std::vector<std::string> training_only;          // names of layers that exist only in training mode begin so
    bool fixed_classes = false;                      // the outputs are as many as the file says
    std::function<Model(const ModelOptions&)> make;  // Error, naming the model and the layer, when the options do not fit
};

// Whether a model's name is the path of a file.
bool is_model_file(std::string_view name);

// The model of that name, or in that file. Error with a suggestion when there is none, or with what is wrong with the file.
ModelSource open_model(const std::string& name);

// Whether both names stand for the same model: one name, or files of the same bytes.
bool same_model(const std::string& a, const std::string& b);

}  // namespace convoy
