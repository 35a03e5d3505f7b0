#include "comm/mpi/mpi_calls.h"

#include <cstring>

namespace convoy {

void check_mpi(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail("{}: {}", call, std::string_view(text, static_cast<size_t>(length)));
}

bool wait_for(MPI_Request& request, Deadline deadline) {
    Patience patience;
    for (;;) {
        int done = 0;
        check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done) return true;
        if (!patience.pause(deadline)) return false;
    }
}

Request pack(MPI_Request request) {
    static_assert(sizeof(MPI_Request) <= sizeof(uint64_t));
    Request packed{0, true};
    std::memcpy(&packed.handle, &request, sizeof(MPI_Request));
    return packed;
}

MPI_Request unpack(const Request& request) {
    MPI_Request unpacked;
    std::memcpy(&unpacked, &request.handle, sizeof(MPI_Request));
    return unpacked;
}

}  // namespace convoy
