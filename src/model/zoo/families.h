// The families of the zoo: one function per file of this folder. Each builds the model that the entry names, with options that are complete
// and whose input has the rank of the entry's default input. A family with several members keeps their table in its own file.
//
// Parameter names and weight layouts are those of torchvision's state dicts where torchvision has the model.
#pragma once

#include "base/error.h"
#include "model/builder.h"
#include "model/zoo.h"

namespace convoy {

Model lenet5(const ZooEntry& entry, const ModelOptions& options);
Model alexnet(const ZooEntry& entry, const ModelOptions& options);
Model vgg(const ZooEntry& entry, const ModelOptions& options);
Model googlenet(const ZooEntry& entry, const ModelOptions& options);
Model resnet(const ZooEntry& entry, const ModelOptions& options);
Model densenet(const ZooEntry& entry, const ModelOptions& options);
Model squeezenet(const ZooEntry& entry, const ModelOptions& options);
Model mobilenet(const ZooEntry& entry, const ModelOptions& options);
Model cosmoflow(const ZooEntry& entry, const ModelOptions& options);
Model unet3d(const ZooEntry& entry, const ModelOptions& options);

// --- What the families share ----------------------------------------------------------------------------------------------------

// A builder in the mode of the options, and the input [batch, options.input].
Builder begin_model(const ModelOptions& options);

// The model whose prediction is `prediction`, trained by `loss` on it; further outputs and losses may be added to it.
Model finish_model(Builder& b, const ZooEntry& entry, const ModelOptions& options, ValueId prediction,
                   LossKind loss = LossKind::CrossEntropy);

// The member of a family's table with that name.
template <class Table>
const auto& member_of(const Table& table, std::string_view name) {
    for (const auto& member : table)
        if (member.name == name) return member;
    raise_bug(__FILE__, __LINE__, "a member of the family", std::string(name));
}

}  // namespace convoy
