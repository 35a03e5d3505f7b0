// A library with the functions of NVML that the energy meter calls, for tests: two GPUs, of which the second counts no energy. The first uses one joule from
// one question to the next.

namespace {

constexpr int kNotSupported = 3, kNotFound = 6;
int devices[2];
unsigned long long used = 5000;

bool ends_with(const char* text, const char* end) {
    const char *t = text, *e = end;
    while (*t) ++t;
    while (*e) ++e;
    while (e != end && t != text)
        if (*--t != *--e) return false;
    return e == end;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int status) { return status == kNotSupported ? "Not Supported" : "Not Found"; }
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
    const char text[] = "123.45";
    for (unsigned i = 0; i < sizeof(text) && i < length; ++i) version[i] = text[i];
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
    for (int i = 0; i < 2; ++i)
        if (ends_with(bus, i == 0 ? ":01:00.0" : ":02:00.0")) {
            *device = &devices[i];
            return 0;
        }
    return kNotFound;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
    if (device == &devices[1]) return kNotSupported;
    *millijoules = used += 1000;
    return 0;
}
}
