#include "kernels/energy_meter.h"

#include <gtest/gtest.h>

namespace convoy {

namespace {

TEST(EnergyMeter, SaysThatTheLibraryIsNotThere) {
    const Energy energy = EnergyMeter("00000000:01:00.0", "libno-such-nvml.so.1").read();
    EXPECT_FALSE(energy.joules);
    EXPECT_NE(energy.source.find("NVML was not found (libno-such-nvml.so.1"), std::string::npos) << energy.source;
    const NvmlStatus status = nvml_status("libno-such-nvml.so.1");
    EXPECT_FALSE(status.ready);
    EXPECT_NE(status.detail.find("NVML was not found"), std::string::npos) << status.detail;
}

TEST(EnergyMeter, RefusesALibraryThatIsNotNvml) {
    const Energy energy = EnergyMeter("00000000:01:00.0", "libm.so.6").read();
    EXPECT_FALSE(energy.joules);
    EXPECT_EQ(energy.source, "NVML has no nvmlInit_v2");
}

TEST(EnergyMeter, CountsJoules) {
    const EnergyMeter meter("00000000:01:00.0", STAND_IN_NVML);
    const Energy before = meter.read(), after = meter.read();
    ASSERT_TRUE(before.joules && after.joules) << before.source;
    EXPECT_DOUBLE_EQ(*after.joules - *before.joules, 1.0);
    EXPECT_GE(*before.joules, 5.0);
    EXPECT_EQ(nvml_status(STAND_IN_NVML).detail, "NVML of driver 123.45");
}

TEST(EnergyMeter, SaysWhyAGpuHasNoFigure) {
    EXPECT_EQ(EnergyMeter("00000000:02:00.0", STAND_IN_NVML).read().source, "NVML has no count of this GPU's energy: Not Supported");
    EXPECT_EQ(EnergyMeter("00000000:77:00.0", STAND_IN_NVML).read().source, "NVML does not know the GPU 00000000:77:00.0: Not Found");
}

}  // namespace

}  // namespace convoy
