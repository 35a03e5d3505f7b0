#include "kernels/cpu/onednn/implementations.h"
#include "kernels/cpu/conv/convolution.h"
#include "kernels/cpu/implementation.h"
#include "kernels/cpu/own_implementations.h"

namespace convoy::cpu {

const std::vector<const Implementation*>& implementations() {
    static const std::vector<const Implementation*> list{
        &convolutions(),        &onednn_linear(),       &norm_implementation(),   &elementwise_implementation(),
        &pool_implementation(), &loss_implementation(), &update_implementation(), &rearrange_implementation()};
    return list;
}

}  // namespace convoy::cpu
