// The reference as a backend: one candidate for every single op, host memory, and kernels that run in the calling thread.
#include <cstring>

#include "base/error.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/view.h"
#include "kernels/registry.h"
#include "program/in_place.h"
#include "program/storage.h"

namespace convoy {

namespace {

constexpr const char* kDirect = "reference:direct";  // what needs no workspace

class ReferenceTarget : public Target {
  public:
    explicit ReferenceTarget(int threads) : threads_(threads) {}

    std::string name() const override { return "reference"; }

    DType storage(Element element, DType compute) const override {
        require(compute == DType::f64 || compute == DType::f32, "the reference backend computes in f64 or f32, not {}", name_of(compute));
        return stored_as(element, compute);
    }

    std::vector<Candidate> candidates(const Problem& problem) const override {
        if (problem.steps.size() != 1) return {};
        const auto& step = problem.steps[0];
        std::vector<TensorDesc> inputs, outputs;
        for (const int i : step.inputs) inputs.push_back(problem.tensors[static_cast<size_t>(i)]);
        for (const int i : step.outputs) outputs.push_back(problem.tensors[static_cast<size_t>(i)]);
        Candidate candidate;
        candidate.algorithm = "reference";
        candidate.inputs.resize(static_cast<size_t>(problem.inputs));
        candidate.outputs.resize(static_cast<size_t>(problem.outputs));
        candidate.workspace_bytes = reference_workspace_bytes(step.op, inputs, outputs, threads_);
        for (const auto& [output, input] : in_place_of(step.op, static_cast<int>(inputs.size())))
            candidate.in_place.emplace_back(step.outputs[static_cast<size_t>(output)] - problem.inputs,
                                            step.inputs[static_cast<size_t>(input)]);
        if (candidate.workspace_bytes == 0) return {candidate};
        Candidate without = candidate;  // plain loops
        without.algorithm = kDirect;
        without.workspace_bytes = 0;
        without.seconds = work_of(problem) / (1e9 * threads_);
        return {candidate, without};
    }

  private:
    int threads_;
};

class HostMemory : public Memory {
  public:
    explicit HostMemory(int64_t bytes) : buffer_(bytes) {}
    std::byte* data() override { return buffer_.data(); }
    int64_t bytes() const override { return buffer_.bytes(); }
    void fill(uint8_t byte) override {
        if (bytes() > 0) std::memset(data(), byte, static_cast<size_t>(bytes()));
    }

  private:
    Buffer buffer_;
};

class OpKernel : public Kernel {
  public:
    OpKernel(const KernelRequest& request, void* workspace, int threads)
        : op_(request.problem.steps.at(0).op), workspace_(workspace), threads_(threads) {
        const auto& step = request.problem.steps[0];
        for (const int i : step.inputs) inputs_.push_back(request.inputs.at(static_cast<size_t>(i)));
        for (const int i : step.outputs) outputs_.push_back(request.outputs.at(static_cast<size_t>(i - request.problem.inputs)));
    }
    void run(const StepContext& context) override { run_reference(op_, inputs_, outputs_, workspace_, threads_, context); }

  private:
    Op op_;
    std::vector<Operand> inputs_, outputs_;
    void* workspace_;
    int threads_;
};

template <class From, class To>
void convert(const Operand& src, const Operand& dst, int threads) {
    const auto from = ref::const_view<From>(src);
    const auto to = ref::view<To>(dst);
    ref::parallel_ranges(threads, from.count, 1 << 15, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(from[i]);
    });
}

void copy_bytes(const Operand& src, const Operand& dst, int threads) {
    const int64_t bytes = numel(src.desc.shape) * size_of(src.desc.dtype);
    ref::parallel_ranges(threads, bytes, 1 << 17, [&](int64_t begin, int64_t end) {
        std::memcpy(static_cast<std::byte*>(dst.data) + begin, static_cast<const std::byte*>(src.data) + begin,
                    static_cast<size_t>(end - begin));
    });
}

class CopyKernel : public Kernel {
  public:
    using Copy = void (*)(const Operand& src, const Operand& dst, int threads);

    CopyKernel(const Operand& src, const Operand& dst, int threads)
        : src_(src), dst_(dst), copy_(choose(src.desc, dst.desc)), threads_(threads) {}
    void run(const StepContext&) override { copy_(src_, dst_, threads_); }

  private:
    static Copy choose(const TensorDesc& src, const TensorDesc& dst) {
        if (src.dtype == dst.dtype) return copy_bytes;
        if (src.dtype == DType::f32 && dst.dtype == DType::f64) return convert<float, double>;
        if (src.dtype == DType::f64 && dst.dtype == DType::f32) return convert<double, float>;
        fail("the reference backend does not convert {} to {}", name_of(src.dtype), name_of(dst.dtype));
    }

    Operand src_, dst_;
    Copy copy_;
    int threads_;
};

void check_host_copy(const Tensor& tensor, const Operand& operand) {
    CONVOY_CHECK(operand.layout.is_plain(), "the reference got layout {}", operand.layout.text());
    CONVOY_CHECK(tensor.dtype() == operand.desc.dtype && tensor.shape() == operand.desc.shape,
                 "a host tensor {} of {} for an operand {} of {}", to_string(tensor.shape()), name_of(tensor.dtype()),
                 to_string(operand.desc.shape), name_of(operand.desc.dtype));
}

class ReferenceBackend : public Backend {
  public:
    explicit ReferenceBackend(int threads) : threads_(threads), target_(threads) {}

    const Target& target() const override { return target_; }
    std::unique_ptr<Memory> allocate(int64_t bytes) override { return std::make_unique<HostMemory>(bytes); }

    std::unique_ptr<Kernel> prepare(const KernelRequest& request) override {
        const bool direct = request.algorithm == kDirect;
        CONVOY_CHECK((direct || request.algorithm == "reference") && request.problem.steps.size() == 1,
                     "the reference was asked for {} by \"{}\"", text_of(request.problem), request.algorithm);
        return std::make_unique<OpKernel>(request, direct ? nullptr : request.workspace, threads_);
    }

    std::unique_ptr<Kernel> prepare_copy(const Operand& src, const Operand& dst) override {
        CONVOY_CHECK(src.desc.shape == dst.desc.shape, "a copy of {} to {}", to_string(src.desc.shape), to_string(dst.desc.shape));
        for (const auto* o : {&src, &dst}) CONVOY_CHECK(o->layout.is_plain(), "the reference got layout {}", o->layout.text());
        return std::make_unique<CopyKernel>(src, dst, threads_);
    }

    void upload(const Tensor& src, const Operand& dst) override {
        check_host_copy(src, dst);
        if (src.bytes() > 0) std::memcpy(dst.data, src.data(), static_cast<size_t>(src.bytes()));
    }
    void download(const Operand& src, Tensor& dst) override {
        check_host_copy(dst, src);
        if (dst.bytes() > 0) std::memcpy(dst.data(), src.data, static_cast<size_t>(dst.bytes()));
    }
    void synchronize() override {}

  private:
    int threads_;
    ReferenceTarget target_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(const BackendOptions& options) {
    require(options.threads >= 1, "the reference backend needs at least one thread, not {}", options.threads);
    return std::make_unique<ReferenceBackend>(options.threads);
}

BackendEntry reference_entry() {
    return {"reference", [] { return BackendStatus{"reference", true, "ready", {DType::f64, DType::f32}}; }, make_reference_backend};
}

}  // namespace convoy
