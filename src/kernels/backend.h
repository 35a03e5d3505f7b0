// What a backend is: a Target (the pure description the compiler reads), memory, and kernels that do what a candidate promised. A kernel is
// prepared once, with its operands bound, and then runs every step without allocating or looking anything up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/device.h"
#include "program/problem.h"
#include "program/target.h"
#include "tensor/layout.h"
#include "tensor/tensor.h"

namespace convoy {

// What of a step a kernel may depend on besides its operands.
struct StepContext {
    uint64_t seed = 0;
    uint32_t step = 0;
};

// A tensor in a backend's memory.
struct Operand {
    void* data = nullptr;
    TensorDesc desc;
    Layout layout;
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    virtual void run(const StepContext& context) = 0;
};

struct KernelRequest {
    Problem problem;
    std::string algorithm;  // of the candidate that was chosen
    std::vector<Operand> inputs, outputs;
    void* workspace = nullptr;
    int64_t workspace_bytes = 0;  // of the candidate that was chosen
};

// A block of a backend's memory.
class Memory {
  public:
    virtual ~Memory() = default;
    virtual std::byte* data() = 0;
    virtual int64_t bytes() const = 0;
    // Sets every byte; done when it returns.
    virtual void fill(uint8_t byte) = 0;
};

// A way into an operand for what the next step is to find there, which may be sent while a step runs.
class Intake {
  public:
    virtual ~Intake() = default;
    // Host memory of the operand's size to send from, plain; waits until what was sent from it before has left.
    virtual std::span<std::byte> memory() = 0;
    // Starts sending the whole operand, plain, from `memory()` or elsewhere, beside the kernels that run. Memory of elsewhere whose pages are locked must
    // stay as it is until kernels that were started behind the next `take` have run; other memory may be changed at once.
    virtual void send(std::span<const std::byte> src) = 0;
    // Puts what was sent last into the operand, behind kernels that were started before and ahead of those that come.
    virtual void take() = 0;
};

// Host memory that a device reads by itself, for as long as this lives.
class PageLock {
  public:
    virtual ~PageLock() = default;
};

// Energy since some moment in the past: two readings make a difference.
struct Energy {
    std::optional<double> joules;
    std::string source;  // "NVML, counted by the GPU", or why there is no figure
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual const Target& target() const = 0;
    virtual std::unique_ptr<Memory> allocate(int64_t bytes) = 0;
    virtual std::unique_ptr<Kernel> prepare(const KernelRequest& request) = 0;
    // A kernel that copies `src` to `dst`, which have one shape, and may differ in layout and floating type.
    virtual std::unique_ptr<Kernel> prepare_copy(const Operand& src, const Operand& dst) = 0;
    // Between host tensors (plain) and operands; both wait until the copy is done. Types must agree.
    virtual void upload(const Tensor& src, const Operand& dst) = 0;
    virtual void download(const Operand& src, Tensor& dst) = 0;
    // A way to send what an operand is to hold while kernels run; nothing where the host's memory is this backend's, or `upload` is as good.
    virtual std::unique_ptr<Intake> intake(const Operand&) { return nullptr; }
    // Lets the device read this memory by itself; nothing where that is of no use or cannot be done.
    virtual std::unique_ptr<PageLock> lock_pages(std::span<std::byte>) { return nullptr; }
    // Waits until everything that was started has finished.
    virtual void synchronize() = 0;
    // Whether the host can read and write this backend's memory. If not, kernels run beside the host: run() only starts them, in order.
    virtual bool on_host() const { return true; }
    // Kernels that ran at least once, as one that starts them all together; they must outlive it. Nothing: this backend has no such way.
    virtual std::unique_ptr<Kernel> record(std::span<Kernel* const>) { return nullptr; }
    // The GPU whose memory this is; nothing on the host.
    virtual std::optional<DeviceEndpoint> endpoint() const { return std::nullopt; }
    // What it has used so far.
    virtual Energy energy() const { return {.source = "there is no meter of this backend's energy"}; }
};

struct BackendOptions {
    int threads = 1;
    int device = 0;
};

// By name: reference, cpu, cuda. Error says why when this build or this machine has none of that name.
std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options);

struct DeviceStatus {
    std::string name;        // "NVIDIA H200, 139.8 GiB"
    std::string bus_id;      // "00000000:18:00.0"
    std::string fault = {};  // why the backend cannot use it; empty: it can
};

// Of all backends that are known, whether this build has them or not.
std::vector<std::string> backend_names();

// What each known backend says of itself here: "ready", or why it is not.
struct BackendStatus {
    std::string name;
    bool ready;
    std::string detail;
    std::vector<DType> types = {};           // that it computes in; none when this build lacks it
    std::vector<DeviceStatus> devices = {};  // GPUs, by number; none on the host
    bool faulty = false;                     // what it is made for is here, but it cannot use it
};
std::vector<BackendStatus> backend_statuses();

}  // namespace convoy
