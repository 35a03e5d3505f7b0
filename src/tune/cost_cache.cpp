#include "tune/cost_cache.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/random.h"

namespace convoy {

namespace {

constexpr int kFormat = 1;  // grows whenever keys or entries change their meaning

// Holds the lock file of a cache for as long as it lives.
class Lock {
  public:
    explicit Lock(const std::filesystem::path& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
        require(descriptor_ >= 0, "cannot make the lock {}: {}", path.string(), std::strerror(errno));
        while (::flock(descriptor_, LOCK_EX) != 0)
            if (errno != EINTR) break;  // a file system without locks: the last writer wins
    }
    ~Lock() { ::close(descriptor_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    int descriptor_;
};

}  // namespace

std::filesystem::path cache_file(const CostSetting& setting) {
    return cache_directory() / fmt::format("kernels-{}-{}-{:08x}.json", setting.backend, setting.threads, stream_of(setting.machine));
}

CostTable CostCache::parse() const {
    const Json document = Json::parse(read_file(path_));
    require(document.is_object() && document.value("format", 0) == kFormat, "its format is {}, and {} is expected",
            document.is_object() ? document.value("format", 0) : 0, kFormat);
    const std::string machine = document.value("machine", "");
    require(machine == setting_.machine, "it was measured on \"{}\", and this is \"{}\"", machine, setting_.machine);
    const int threads = document.value("threads", 0);
    require(threads == setting_.threads, "it was measured with {} threads, and these are {}", threads, setting_.threads);
    return cost_table_from_json(document);
}

CostTable CostCache::read() const {
    std::error_code none;
    if (path_.empty() || !std::filesystem::exists(path_, none)) return {};
    try {
        return parse();
    } catch (const Json::exception&) {
        warn("{} is ignored: it is damaged or cut short; it is measured anew", path_.string());
    } catch (const Error& e) {
        warn("{} is ignored: {}; it is measured anew", path_.string(), e.what());
    }
    return {};
}

CostTable CostCache::add(const CostTable& table) const {
    std::error_code failed;
    std::filesystem::create_directories(path_.parent_path(), failed);
    require(!failed, "cannot make {}: {}", path_.parent_path().string(), failed.message());
    std::filesystem::path lock_path = path_;
    lock_path += ".lock";
    const Lock lock(lock_path);
    CostTable all;
    try {
        if (std::filesystem::exists(path_, failed)) all = parse();
    } catch (const std::exception&) {
        all = {};  // read() has said so
    }
    const CostTable before = all;
    all.add(table);
    if (all == before && std::filesystem::exists(path_, failed)) return all;
    Json document{{"format", kFormat}, {"machine", setting_.machine}, {"threads", setting_.threads}};
    document.update(to_json(all));
    write_file(path_, document.dump(1) + "\n");
    return all;
}

}  // namespace convoy
