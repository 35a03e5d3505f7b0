// What Open MPI's (or MPICH's) own all_reduce and Gloo's cost on this machine, for bench/comm: a vector of floats, the slowest rank's time, medians.
// Run under mpirun: comm_rivals STORE BYTES... prints JSON; STORE is an empty directory where Gloo's ranks find each other.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <mpi.h>

namespace {

constexpr double kSecondsEach = 0.3;

// As Convoy's own measurement does it: small ones follow each other.
double median_time(size_t bytes, const std::function<void()>& work) {
    const int at_once = static_cast<int>(std::clamp<size_t>((1 << 20) / bytes, 1, 16));
    std::vector<double> times;
    double spent = 0;
    const auto once = [&] {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int i = 0; i < at_once; ++i) work();
        double mine = (MPI_Wtime() - start) / at_once, slowest = 0;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return slowest;
    };
    once();
    while (times.size() < 3 || spent < kSecondsEach) {
        times.push_back(once());
        spent += times.back() * at_once;
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

std::shared_ptr<gloo::Context> gloo_context(int rank, int size, const std::string& store) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = "lo";
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    gloo::rendezvous::FileStore files(store);
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context->connectFullMesh(files, device);
    return context;
}

double time_gloo(const std::shared_ptr<gloo::Context>& context, std::vector<float>& data, gloo::AllreduceOptions::Algorithm algorithm) {
    return median_time(data.size() * sizeof(float), [&] {
        gloo::AllreduceOptions options(context);
        options.setOutput(data.data(), data.size());
        options.setReduceFunction([](void* out, const void* a, const void* b, size_t n) { gloo::sum<float>(out, a, b, n); });
        options.setAlgorithm(algorithm);
        gloo::allreduce(options);
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "comm_rivals STORE BYTES..., under mpirun\n");
        return 2;
    }
    int provided = 0, rank = 0, size = 1;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto context = gloo_context(rank, size, argv[1]);
    if (rank == 0) std::printf("[");
    for (int i = 2; i < argc; ++i) {
        const size_t bytes = std::strtoull(argv[i], nullptr, 10);
        std::vector<float> data(bytes / sizeof(float));
        const double mpi = median_time(
            bytes, [&] { MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
        const double ring = time_gloo(context, data, gloo::AllreduceOptions::Algorithm::RING);
        const double cube = time_gloo(context, data, gloo::AllreduceOptions::Algorithm::BCUBE);
        if (rank == 0)
            std::printf("%s{\"bytes\": %zu, \"mpi\": %.9f, \"gloo\": %.9f}", i == 2 ? "" : ", ", bytes, mpi, std::min(ring, cube));
    }
    if (rank == 0) std::printf("]\n");
    MPI_Finalize();
    return 0;
}
