#include <cstdlib>

#include <unistd.h>

#include "app/app.h"

namespace {

// GCC's OpenMP lets threads that wait for work spin for milliseconds. When something else needs the cores that turns every parallel loop into a wait for the
// scheduler; a few microseconds serve as well when nothing does. The library reads the setting when it is loaded, before main, hence the second start.
void shorten_spinning(char** argv) {
    if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
    if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0)
        execv("/proc/self/exe", argv);  // comes back only when it fails, and then all goes on as it is
}

}  // namespace

int main(int argc, char** argv) {
    shorten_spinning(argv);
    return convoy::run_app(argc, argv);
}
