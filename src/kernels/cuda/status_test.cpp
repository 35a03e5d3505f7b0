// Needs no GPU.
#include "kernels/cuda/status.h"

#include <gtest/gtest.h>

namespace convoy::cuda {
namespace {

template <class Status>
Failures failures_of(Status status) {
    Failures failures;
    try {
        check(status, "a call");
    } catch (const Error& e) {
        failures.add(e);
    }
    return failures;
}

TEST(Failures, TellTooLittleMemoryFromOtherReasons) {
    EXPECT_EQ(failures_of(cudaSuccess).last, "");
    EXPECT_TRUE(failures_of(cudaErrorMemoryAllocation).for_memory);
    EXPECT_TRUE(failures_of(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED).for_memory);
    EXPECT_TRUE(failures_of(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED).for_memory);
    EXPECT_TRUE(failures_of(CUBLAS_STATUS_ALLOC_FAILED).for_memory);
    EXPECT_FALSE(failures_of(cudaErrorInvalidValue).for_memory);
    EXPECT_FALSE(failures_of(CUDNN_STATUS_NOT_SUPPORTED).for_memory);
    EXPECT_FALSE(failures_of(CUBLAS_STATUS_NOT_SUPPORTED).for_memory);
    EXPECT_EQ(failures_of(cudaErrorInvalidValue).last, "a call: invalid argument (cudaErrorInvalidValue)");
}

TEST(Failures, TheLastReasonCountsAndMemoryIsNotForgotten) {
    Failures failures;
    failures.add(OutOfMemory("too little"));
    failures.add(Error("no such engine"));
    EXPECT_EQ(failures.last, "no such engine");
    EXPECT_TRUE(failures.for_memory);
}

}  // namespace
}  // namespace convoy::cuda
