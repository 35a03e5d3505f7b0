#include "fuzz.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

#include <sanitizer/allocator_interface.h>
#include <unistd.h>

#include "base/error.h"

namespace convoy::fuzz {

namespace {

constexpr int64_t kFree = 1 << 20;  // what any parser may take, whatever the input

std::atomic<int64_t> live{0}, peak{0};
std::atomic<bool> counting{false};

void on_malloc(const volatile void* /*block*/, size_t size) {
    if (!counting) return;
    const int64_t now = live += static_cast<int64_t>(size);
    if (now > peak) peak = now;
}

void on_free(const volatile void* block) {
    if (counting && block != nullptr) live -= static_cast<int64_t>(__sanitizer_get_allocated_size(block));
}

[[noreturn]] void stop(const std::string& text) {
    std::fprintf(stderr, "fuzz: %s\n", text.c_str());
    std::abort();
}

struct Directory {
    std::filesystem::path path;
    Directory() {
        const std::filesystem::path memory = "/dev/shm";
        std::error_code failed;
        const auto base = std::filesystem::is_directory(memory, failed) ? memory : std::filesystem::temp_directory_path();
        path = base / ("convoy-fuzz-" + std::to_string(::getpid()));
        std::filesystem::create_directories(path);
    }
    ~Directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

}  // namespace

const std::filesystem::path& directory() {
    static const Directory one;
    return one.path;
}

std::filesystem::path file(const std::string& name, std::string_view bytes) {
    const auto path = directory() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
}

void run(size_t input_bytes, size_t multiple, const std::function<void()>& parser) {
    static const int hooked = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    if (hooked == 0) stop("the allocation hooks could not be installed");
    live = peak = 0;
    counting = true;
    try {
        parser();
    } catch (const Error&) {  // the input was refused
    } catch (const std::exception& error) {
        stop(std::string("the parser threw something that is no Error: ") + error.what());
    }
    counting = false;
    const int64_t most = kFree + static_cast<int64_t>(multiple * input_bytes);
    if (peak > most) stop(fmt::format("{} bytes were held for an input of {}, more than {}", peak.load(), input_bytes, most));
}

}  // namespace convoy::fuzz
