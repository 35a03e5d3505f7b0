#include "kernels/cpu/onednn/gemm.h"

#include "base/error.h"
#include "kernels/cpu/onednn/common.h"

namespace convoy::cpu {

void Gemm::run() const {
    const auto status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data, a.step, b.data, b.step,
                                   add ? 1.0f : 0.0f, c, c_step);
    CONVOY_CHECK(status == dnnl_success, "oneDNN's matrix product failed with status {}", static_cast<int>(status));
}

}  // namespace convoy::cpu
