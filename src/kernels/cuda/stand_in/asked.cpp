#include "kernels/cuda/stand_in/asked.h"

#include <algorithm>
#include <iterator>

namespace stand_in::cudnn {

namespace {

cudaDataType type_of(cudnnDataType_t type) {
    return type == CUDNN_DATA_DOUBLE     ? CUDA_R_64F
           : type == CUDNN_DATA_HALF     ? CUDA_R_16F
           : type == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF
                                         : CUDA_R_32F;
}

// Spatial dims go to the end of three.
Dims5 five(const std::vector<int64_t>& list, int64_t fill) {
    Dims5 result{list[0], list[1], fill, fill, fill};
    for (size_t d = 2; d < list.size(); ++d) result[kDims - list.size() + d] = list[d];
    return result;
}
std::array<int64_t, 3> three(const std::vector<int64_t>& list, int64_t fill) {
    std::array<int64_t, 3> result{fill, fill, fill};
    for (size_t d = 0; d < list.size(); ++d) result[3 - list.size() + d] = list[d];
    return result;
}

struct Names {
    cudnnBackendDescriptorType_t type;
    Direction direction;
    cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};
constexpr Names kNames[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, Direction::Forward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, Direction::GradInput,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, Direction::GradWeight,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

void take_convolution(const Descriptor& op, const Names& names, Asked& asked) {
    const Descriptor& conv = part_of(op, names.convolution);
    asked.direction = names.direction;
    asked.x = tensor_of(part_of(op, names.x));
    asked.w = tensor_of(part_of(op, names.w));
    asked.y = tensor_of(part_of(op, names.y));
    require(one_of<float>(op, names.alpha) == 1 && one_of<float>(op, names.beta) == 0, "scales are 1 and 0 here");
    require(one_of<cudnnConvolutionMode_t>(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION,
            "windows are not turned here");
    const auto before = list_of<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    require(before == list_of<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS), "padding is the same before and behind");
    require(static_cast<int>(before.size()) == asked.x.given - 2, "as many paddings as spatial dims", CUDNN_STATUS_BAD_PARAM);
    require(*std::min_element(before.begin(), before.end()) >= 0, "padding is not negative", CUDNN_STATUS_BAD_PARAM);
    asked.pad = three(before, 0);
    asked.stride = three(list_of<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), 1);
    asked.dilation = three(list_of<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS), 1);
    const bool channels = asked.x.dims[1] % asked.w.dims[1] == 0 && asked.w.dims[0] % asked.groups() == 0;
    require(channels && asked.x.dims[0] == asked.y.dims[0] && asked.w.dims[0] == asked.y.dims[1], "operands that do not fit",
            CUDNN_STATUS_BAD_PARAM);
    for (size_t d = 0; d < 3; ++d) {
        const int64_t reach = asked.x.dims[2 + d] + 2 * asked.pad[d] - (asked.w.dims[2 + d] - 1) * asked.dilation[d] - 1;
        require(reach >= 0 && asked.y.dims[2 + d] == reach / asked.stride[d] + 1, "sizes that do not fit", CUDNN_STATUS_BAD_PARAM);
    }
}

}  // namespace

Tensor tensor_of(const Descriptor& d) {
    const auto dims = list_of<int64_t>(d, CUDNN_ATTR_TENSOR_DIMENSIONS), strides = list_of<int64_t>(d, CUDNN_ATTR_TENSOR_STRIDES);
    require(dims.size() == strides.size() && (dims.size() == 4 || dims.size() == 5), "tensors have four or five dims");
    require(*std::min_element(dims.begin(), dims.end()) > 0, "an empty tensor", CUDNN_STATUS_BAD_PARAM);
    return {one_of<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID),
            type_of(one_of<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE)),
            static_cast<int>(dims.size()),
            five(dims, 1),
            five(strides, 0),
            one_of<bool>(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL)};
}

Asked asked_of(const Descriptor& graph) {
    Asked asked;
    const auto& ops = value_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors;
    require(!ops.empty(), "an empty graph", CUDNN_STATUS_BAD_PARAM);
    for (const Descriptor& op : ops) {
        require(op->finished, "an operation is not finished", CUDNN_STATUS_BAD_PARAM);
        const auto names = std::find_if(std::begin(kNames), std::end(kNames), [&](const Names& n) { return n.type == op->type; });
        if (names != std::end(kNames)) {
            require(&op == &ops[0], "the convolution comes first here");
            take_convolution(op, *names, asked);
            continue;
        }
        require(&op != &ops[0], "the convolution comes first here");
        const Descriptor& how = part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        Pointwise pass{.add = one_of<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD};
        pass.x = tensor_of(part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
        pass.y = tensor_of(part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
        if (pass.add)
            pass.b = tensor_of(part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
        else
            pass.slope = one_of<double>(how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
        const Tensor& last = asked.behind.empty() ? asked.result() : asked.behind.back().y;
        require(pass.x.uid == last.uid && last.is_virtual, "operations follow each other here");
        asked.behind.push_back(pass);
    }
    return asked;
}

}  // namespace stand_in::cudnn
