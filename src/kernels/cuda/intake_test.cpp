// What is sent ahead arrives when it is taken, and not before. Skipped where there is no GPU.
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "kernels/cuda/device.h"

namespace convoy::cuda {
namespace {

class IntakeTest : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = why_no_device(); !why.empty()) GTEST_SKIP() << why;
        backend_ = make_backend("cuda", {});
    }

    Tensor random(const Shape& shape, DType type) {
        Tensor tensor(shape, DType::f32);
        for (float& v : tensor.as<float>()) v = static_cast<float>(std::uniform_int_distribution<int>(-100, 100)(random_));
        return tensor.to(type);
    }
    static std::span<std::byte> bytes_of(Tensor& tensor) { return {tensor.data(), static_cast<size_t>(tensor.bytes())}; }

    std::unique_ptr<Backend> backend_;
    std::mt19937_64 random_{7};
};

TEST_F(IntakeTest, TakesWhatWasSentLast) {
    for (const DType type : {DType::f32, DType::bf16, DType::i32, DType::f64})
        for (const bool last : {false, true}) {
            const Shape shape{3, 5, 67, 129};
            const Operand operand{nullptr, TensorDesc::whole(shape, type), last ? Layout::channels_last(4) : Layout::plain()};
            const auto memory = backend_->allocate(convoy::bytes_of(shape, type, operand.layout));
            const Operand bound{memory->data(), operand.desc, operand.layout};
            const auto intake = backend_->intake(bound);
            ASSERT_NE(intake, nullptr);
            Tensor now = random(shape, type), seen(shape, type);
            intake->send(bytes_of(now));
            const Tensor sent = now;
            std::memset(now.data(), 1, static_cast<size_t>(now.bytes()));  // memory that is not locked may change at once
            intake->take();
            for (int round = 0; round < 6; ++round) {
                const Tensor before = round == 0 ? sent : seen;
                Tensor next = random(shape, type);
                const auto lock = round % 3 == 0 ? backend_->lock_pages(bytes_of(next)) : nullptr;
                EXPECT_EQ(lock != nullptr, round % 3 == 0);
                if (round % 3 == 1) {
                    const auto own = intake->memory();
                    std::memcpy(own.data(), next.data(), own.size());
                    intake->send(own);
                } else {
                    intake->send(bytes_of(next));
                }
                backend_->download(bound, seen);
                EXPECT_EQ(seen, before) << "arrived before it was taken";
                intake->take();
                backend_->download(bound, seen);
                EXPECT_EQ(seen, next) << name_of(type) << ", round " << round;
            }
        }
}

TEST_F(IntakeTest, WhatIsSentTwiceIsTakenOnce) {
    const Shape shape{1000, 1000};
    const auto memory = backend_->allocate(numel(shape) * 4);
    const Operand bound{memory->data(), TensorDesc::whole(shape, DType::f32), Layout::plain()};
    const auto intake = backend_->intake(bound);
    Tensor first = random(shape, DType::f32), second = random(shape, DType::f32), seen(shape, DType::f32);
    intake->send(bytes_of(first));
    intake->send(bytes_of(second));
    intake->take();
    backend_->download(bound, seen);
    EXPECT_EQ(seen, second);
}

TEST_F(IntakeTest, LocksWholePagesOnly) {
    Tensor large({1 << 20}, DType::u8), small({1000}, DType::u8);
    EXPECT_NE(backend_->lock_pages(bytes_of(large)), nullptr);
    EXPECT_EQ(backend_->lock_pages(bytes_of(small)), nullptr);
    EXPECT_EQ(backend_->lock_pages(bytes_of(large).subspan(64)), nullptr);
}

}  // namespace
}  // namespace convoy::cuda
