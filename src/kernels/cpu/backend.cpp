// The cpu backend: host memory, oneDNN and own vectorised kernels for float32, the reference for everything else (float64 among it).
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "kernels/cpu/implementation.h"
#include "kernels/cpu/onednn/common.h"
#include "kernels/reference/reference.h"
#include "kernels/registry.h"

namespace convoy {

namespace {

using cpu::CpuContext;

class CpuTarget : public Target {
  public:
    CpuTarget(CpuContext context, const Target& reference) : context_(context), reference_(reference) {}

    std::string name() const override { return "cpu"; }
    DType storage(Element element, DType compute) const override {
        require(compute == DType::f32 || compute == DType::f64, "the cpu backend computes in f32 or f64, not {}", name_of(compute));
        return reference_.storage(element, compute);
    }
    std::vector<Candidate> candidates(const Problem& problem) const override {
        std::vector<Candidate> all;
        for (const auto* implementation : cpu::implementations()) {
            if (!for_fast_kernels(problem)) break;
            auto some = implementation->candidates(problem, context_);
            all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
        }
        for (auto& candidate : reference_.candidates(problem)) {
            double elements = 0;
            for (const auto& t : problem.tensors) elements += static_cast<double>(numel(t.shape));
            // About a tenth of what a vectorised pass reaches, and a third of what a good convolution does.
            candidate.seconds = std::max({candidate.seconds, elements * 10e-9, work_of(problem) / (25e9 * context_.threads)});
            all.push_back(std::move(candidate));
        }
        for (auto& candidate : all)
            if (candidate.operations == 0) candidate.operations = work_of(problem);
        return all;
    }

    std::vector<Refusal> refusals(const Problem& problem) const override {
        std::vector<Refusal> all;
        for (const auto* implementation : cpu::implementations())
            for (auto& refusal : implementation->refusals(problem, context_)) all.push_back(std::move(refusal));
        return all;
    }

  private:
    // Parts without elements are left to the reference.
    static bool for_fast_kernels(const Problem& problem) {
        return std::none_of(problem.tensors.begin(), problem.tensors.end(), [](const TensorDesc& t) { return numel(t.shape) == 0; });
    }

    CpuContext context_;
    const Target& reference_;
};

class CpuBackend : public Backend {
  public:
    explicit CpuBackend(const BackendOptions& options)
        : context_{.threads = options.threads, .block = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core ? 16 : 8},
          reference_(make_reference_backend(options)),
          target_(context_, reference_->target()) {}

    const Target& target() const override { return target_; }
    std::unique_ptr<Memory> allocate(int64_t bytes) override { return reference_->allocate(bytes); }

    std::unique_ptr<Kernel> prepare(const KernelRequest& request) override {
        for (const auto* implementation : cpu::implementations())
            if (request.algorithm == implementation->name() || request.algorithm.rfind(std::string(implementation->name()) + ":", 0) == 0)
                return implementation->prepare(request, context_);
        return reference_->prepare(request);
    }

    std::unique_ptr<Kernel> prepare_copy(const Operand& src, const Operand& dst) override {
        if (src.layout.is_plain() && dst.layout.is_plain()) return reference_->prepare_copy(src, dst);
        return cpu::prepare_reorder(src, dst, context_.threads);
    }

    void upload(const Tensor& src, const Operand& dst) override {
        if (dst.layout.is_plain()) return reference_->upload(src, dst);
        Operand from{const_cast<std::byte*>(src.data()), dst.desc, Layout::plain()};  // a reorder only reads its source
        cpu::prepare_reorder(from, dst, context_.threads)->run({});
    }

    void download(const Operand& src, Tensor& dst) override {
        if (src.layout.is_plain()) return reference_->download(src, dst);
        cpu::prepare_reorder(src, {dst.data(), src.desc, Layout::plain()}, context_.threads)->run({});
    }

    void synchronize() override {}

  private:
    CpuContext context_;
    std::unique_ptr<Backend> reference_;
    CpuTarget target_;
};

}  // namespace

BackendEntry cpu_entry() {
    return {"cpu",
            [] {
                const auto* version = dnnl::version();
                return BackendStatus{"cpu",
                                     true,
                                     fmt::format("oneDNN {}.{}.{}, vectors of {} floats", version->major, version->minor, version->patch,
                                                 dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core ? 16 : 8),
                                     {DType::f64, DType::f32}};
            },
            [](const BackendOptions& options) -> std::unique_ptr<Backend> { return std::make_unique<CpuBackend>(options); }};
}

}  // namespace convoy
