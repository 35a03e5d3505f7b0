#include "tune/cost_cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/random.h"

namespace convoy {

namespace {

constexpr int kFormat = 1;  // grows whenever keys or entries change their meaning

}  // namespace

std::filesystem::path cache_file(const CostSetting& setting) {
    return cache_directory() / fmt::format("kernels-{}-{}-{:08x}.json", setting.backend, setting.threads, stream_of(setting.machine));
}

CostTable CostCache::parse(const std::string& text) const {
    const Json document = Json::parse(text);
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
        return parse(read_file(path_));
    } catch (const Json::exception&) {
        warn("{} is ignored: it is damaged or cut short; it is measured anew", path_.string());
    } catch (const Error& e) {
        warn("{} is ignored: {}; it is measured anew", path_.string(), e.what());
    }
    return {};
}

CostTable CostCache::add(const CostTable& table) const {
    CostTable all;
    update_file(path_, [&](const std::optional<std::string>& held) {
        try {
            if (held) all = parse(*held);
        } catch (const std::exception&) {
            all = {};  // read() has said so
        }
        all.add(table);
        Json document{{"format", kFormat}, {"machine", setting_.machine}, {"threads", setting_.threads}};
        document.update(to_json(all));
        return document.dump(1) + "\n";
    });
    return all;
}

}  // namespace convoy
