// For builds without HDF5.
#include "base/error.h"
#include "data/hdf5/hdf5.h"

namespace convoy {

namespace {

[[noreturn]] void absent(const std::filesystem::path& path) {
    fail("{}: this build cannot read or write HDF5; install HDF5 (Debian: libhdf5-dev) and build again", path.string());
}

}  // namespace

bool has_hdf5() { return false; }

bool is_hdf5(std::string_view bytes) { return bytes.substr(0, 8) == "\x89HDF\r\n\x1a\n"; }

struct Hdf5File::Impl {
    Hdf5Array none;
};
Hdf5File::Hdf5File(const std::filesystem::path& path) { absent(path); }
Hdf5File::~Hdf5File() = default;
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;
std::vector<std::string> Hdf5File::names() const { return {}; }
const Hdf5Array& Hdf5File::array(const std::string&) const { return impl_->none; }
std::optional<int64_t> Hdf5File::attribute(const std::string&, const std::string&) const { return std::nullopt; }
void Hdf5File::read(const std::string&, const Box&, DType, void*) const {}
Tensor Hdf5File::read(const std::string&, const Box&) const { return {}; }

struct Hdf5Writer::Impl {};
Hdf5Writer::Hdf5Writer(std::filesystem::path path) { absent(path); }
Hdf5Writer::~Hdf5Writer() = default;
void Hdf5Writer::write(const std::string&, const Tensor&, const Shape&) {}
void Hdf5Writer::attribute(const std::string&, const std::string&, int64_t) {}
void Hdf5Writer::commit() {}

}  // namespace convoy
