#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "app/app.h"
#include "kernels/reference/gemm.h"

namespace {

bool has(const char* variable) { return std::getenv(variable) != nullptr; }
bool set(const char* variable, const char* value) { return setenv(variable, value, 1) == 0; }

// GCC's OpenMP lets threads that wait for work spin for milliseconds. When something else needs the cores that turns every parallel loop into a wait for the
// scheduler; a few microseconds serve as well when nothing does.
bool shorten_spinning() { return !has("GOMP_SPINCOUNT") && !has("OMP_WAIT_POLICY") && set("GOMP_SPINCOUNT", "1000"); }

bool name_blas_kernels() {
    const char* const better = has("OPENBLAS_CORETYPE") ? nullptr : convoy::ref::better_blas_kernels();
    return better && set("OPENBLAS_CORETYPE", better);
}

// Libraries read these settings when they are loaded, before main, hence the second start.
void start_again_with_settings(char** argv) {
    const bool spinning = shorten_spinning(), kernels = name_blas_kernels();
    if (!spinning && !kernels) return;
    // By its own path, so that it keeps its name in the list of processes.
    std::error_code failed;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (!failed) execv(self.c_str(), argv);  // comes back only when it fails, and then all goes on as it is
}

}  // namespace

int main(int argc, char** argv) {
    start_again_with_settings(argv);
    return convoy::run_app(argc, argv);
}
