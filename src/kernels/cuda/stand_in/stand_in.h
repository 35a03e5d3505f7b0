// A stand-in for a GPU and NVIDIA's libraries, for tests of the cuda backend on machines that have neither: the backend's own sources, kernels included, are
// compiled for the host against the headers in include/, which have the vendor's names and as much of their contents as the backend uses. It computes what the
// real ones compute, and is otherwise as unhelpful as they may be:
//
// - Streams do nothing until somebody waits for them. What is read too early, or changed too early by the host, is seen.
// - Threads of a block run one after the other, in one order and in the next launch in the opposite one, so that a barrier that is missing shows. Threads that
//   wait at different barriers, shuffles with lanes that have ended, and launches that a GPU refuses are errors.
// - Fresh memory holds NaNs; there is little of it. Calls that are illegal while a stream is captured fail.
// - The device's clock says anything, so that all ways that are chosen by measurement are chosen at some time.
// - The libraries refuse what cuDNN and cuBLASLt refuse (alignment, scratch memory that is too small), offer engines that must not be taken, which give wrong
//   results, and write over all of the scratch memory that they asked for.
//
// It says nothing of speed, of races between warps that run at the same time, or of what cuDNN supports beyond that: tests on a GPU remain.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <cuda_runtime_api.h>

namespace stand_in {

// Runs a kernel in every thread of a grid. Returns what was wrong with it, or "".
std::string run_grid(const dim3& grid, const dim3& block, const std::function<void()>& kernel, bool backwards);

// Puts work behind what the stream holds; the real libraries' kernels arrive so.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

// Where memory lies.
enum class Place { Unknown, Pinned, Device };
Place place_of(const void* memory);

// A number from the bits of others.
uint64_t mixed(uint64_t value);

// Elements of a data type, as numbers.
double element(const void* data, cudaDataType type, int64_t index);
void set_element(void* data, cudaDataType type, int64_t index, double value);
// With the ten digits of tf32.
float rounded_to_tf32(float value);

}  // namespace stand_in
