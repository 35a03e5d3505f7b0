#include "model/zoo.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "model/zoo/families.h"

namespace convoy {

const std::vector<ZooEntry>& zoo() {
    const Shape digit{1, 28, 28}, small{3, 32, 32}, image{3, 224, 224};
    const auto volume = [](int64_t channels, int64_t width) { return Shape{channels, width, width, width}; };
    static const std::vector<ZooEntry> entries{
        {"lenet5", "LeNet-5 for 28x28 digits", digit, 10, lenet5},
        {"alexnet", "AlexNet, the one-tower form", image, 1000, alexnet},
        {"vgg11", "VGG with 11 layers of weights", image, 1000, vgg},
        {"vgg13", "VGG with 13 layers of weights", image, 1000, vgg},
        {"vgg16", "VGG with 16 layers of weights", image, 1000, vgg},
        {"vgg19", "VGG with 19 layers of weights", image, 1000, vgg},
        {"vgg11_bn", "VGG-11 with batch norm", image, 1000, vgg},
        {"vgg13_bn", "VGG-13 with batch norm", image, 1000, vgg},
        {"vgg16_bn", "VGG-16 with batch norm", image, 1000, vgg},
        {"vgg19_bn", "VGG-19 with batch norm", image, 1000, vgg},
        {"googlenet", "GoogLeNet with batch norm and its two auxiliary heads", image, 1000, googlenet, {"aux1.", "aux2."}},
        {"resnet18", "ResNet-18 for ImageNet", image, 1000, resnet},
        {"resnet34", "ResNet-34 for ImageNet", image, 1000, resnet},
        {"resnet50", "ResNet-50 v1.5 for ImageNet", image, 1000, resnet},
        {"resnet101", "ResNet-101 v1.5 for ImageNet", image, 1000, resnet},
        {"resnet152", "ResNet-152 v1.5 for ImageNet", image, 1000, resnet},
        {"wide_resnet50_2", "ResNet-50 with bottlenecks twice as wide", image, 1000, resnet},
        {"resnet18_cifar", "ResNet-18 with a stem for 32x32", small, 10, resnet},
        {"resnet20", "ResNet-20 for 32x32, with projection shortcuts", small, 10, resnet},
        {"resnet56", "ResNet-56 for 32x32, with projection shortcuts", small, 10, resnet},
        {"resnet110", "ResNet-110 for 32x32, with projection shortcuts", small, 10, resnet},
        {"densenet121", "DenseNet-121", image, 1000, densenet},
        {"densenet169", "DenseNet-169", image, 1000, densenet},
        {"densenet201", "DenseNet-201", image, 1000, densenet},
        {"squeezenet1_1", "SqueezeNet 1.1", image, 1000, squeezenet},
        {"mobilenet_v2", "MobileNetV2", image, 1000, mobilenet},
        {"cosmoflow64", "CosmoFlow for 64^3 volumes", volume(4, 64), 4, cosmoflow},
        {"cosmoflow64_bn", "CosmoFlow for 64^3 volumes, with batch norm", volume(4, 64), 4, cosmoflow},
        {"cosmoflow128", "CosmoFlow for 128^3 volumes", volume(4, 128), 4, cosmoflow},
        {"cosmoflow256", "CosmoFlow for 256^3 volumes", volume(4, 256), 4, cosmoflow},
        {"cosmoflow512", "CosmoFlow for 512^3 volumes", volume(4, 512), 4, cosmoflow},
        {"unet3d", "3D U-Net, one class per voxel", volume(1, 64), 3, unet3d},
    };
    return entries;
}

const ZooEntry& zoo_entry(std::string_view name) {
    const auto at = std::find_if(zoo().begin(), zoo().end(), [&](const ZooEntry& e) { return e.name == name; });
    if (at != zoo().end()) return *at;
    std::vector<std::string> known;
    for (const auto& entry : zoo()) known.push_back(entry.name);
    fail("there is no model \"{}\"{}", name, did_you_mean(name, known));
}

Model make_model(std::string_view name, const ModelOptions& options) {
    const ZooEntry& entry = zoo_entry(name);
    ModelOptions complete = options;
    if (complete.input.empty()) complete.input = entry.input;
    if (complete.classes == 0) complete.classes = entry.classes;
    require(complete.batch > 0, "model \"{}\": a batch of {}, expected at least 1", name, complete.batch);
    require(complete.classes > 0, "model \"{}\": {} classes, expected at least 1", name, complete.classes);
    require(complete.input.size() == entry.input.size(), "model \"{}\": the input is {}, expected {} dims such as {}", name,
            to_string(complete.input), entry.input.size(), to_string(entry.input));
    for (const int64_t size : complete.input)
        require(size > 0, "model \"{}\": the input is {}, expected positive sizes", name, to_string(complete.input));
    try {
        return entry.make(entry, complete);
    } catch (const Error& e) {
        fail("model \"{}\" with a batch of {} inputs of {}: {}", name, complete.batch, to_string(complete.input), e.what());
    }
}

}  // namespace convoy
