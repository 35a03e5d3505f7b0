#include "data/hdf5/hdf5.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include <hdf5.h>

#include "base/error.h"
#include "base/file.h"
#include "data/bytes.h"

namespace convoy {

namespace {

// The library is one for the whole process, and some builds of it have no lock of their own.
std::mutex& library_lock() {
    static std::mutex lock;
    return lock;
}

// While it lives this thread alone is in the library, which prints its errors unless it is told not to; what it has to say goes into our own.
class Call {
  public:
    Call() : alone_(library_lock()) {
        H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    ~Call() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

  private:
    std::lock_guard<std::mutex> alone_;
    H5E_auto2_t function_ = nullptr;
    void* data_ = nullptr;
};

std::string last_error() {
    std::string text;
    const H5E_walk2_t take = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        auto& first = *static_cast<std::string*>(out);
        if (first.empty() && error->desc) first = error->desc;
        return 0;
    };
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &text);
    return text.empty() ? "unknown error" : text;
}

class Id {
  public:
    Id() = default;
    Id(hid_t value, herr_t (*close)(hid_t)) : value_(value), close_(close) {}
    ~Id() {
        if (value_ >= 0) close_(value_);
    }
    Id(Id&& other) noexcept : value_(std::exchange(other.value_, -1)), close_(other.close_) {}
    Id& operator=(Id&& other) noexcept {
        std::swap(value_, other.value_);
        std::swap(close_, other.close_);
        return *this;
    }
    hid_t get() const { return value_; }
    bool valid() const { return value_ >= 0; }

  private:
    hid_t value_ = -1;
    herr_t (*close_)(hid_t) = nullptr;
};

hid_t native(DType type) {
    switch (type) {
        case DType::f64: return H5T_NATIVE_DOUBLE;
        case DType::f32: return H5T_NATIVE_FLOAT;
        case DType::i64: return H5T_NATIVE_INT64;
        case DType::i32: return H5T_NATIVE_INT32;
        case DType::u8: return H5T_NATIVE_UINT8;
        default: return H5I_INVALID_HID;
    }
}

std::optional<DType> kept_type(hid_t type) {
    const size_t bytes = H5Tget_size(type);
    if (H5Tget_class(type) == H5T_FLOAT)
        return bytes == 8 ? std::optional(DType::f64) : bytes <= 4 ? std::optional(DType::f32) : std::nullopt;
    if (H5Tget_class(type) != H5T_INTEGER) return std::nullopt;
    const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    if (bytes == 1 && !is_signed) return DType::u8;
    if (bytes < 4 || (bytes == 4 && is_signed)) return DType::i32;
    return bytes <= 8 ? std::optional(DType::i64) : std::nullopt;
}

constexpr int64_t kMostGrowth = 1032;  // of what deflate has packed

// Why an array cannot be what it claims: the library believes a few bytes that say "terabytes", and so would we. Empty: it may be read. Arrays that were
// described and never written are refused with those that are damaged.
std::string impossible(hid_t dataset, const Shape& shape, int64_t element_bytes, int64_t file_bytes) {
    const Id layout(H5Dget_create_plist(dataset), H5Pclose);
    if (!layout.valid()) return last_error();
    const H5D_layout_t kind = H5Pget_layout(layout.get());
    if (kind == H5D_VIRTUAL || H5Pget_external_count(layout.get()) != 0) return "expected numbers in the file itself, found them in others";
    const auto bytes = checked_bytes(shape, element_bytes);
    if (!bytes) return fmt::format("impossible shape {}: its size is past 2^62 bytes", to_string(shape));
    int64_t growth = 1, piece = 0;
    if (kind == H5D_CHUNKED) {
        std::array<hsize_t, Dims::kMost> sizes{};
        if (H5Pget_chunk(layout.get(), Dims::kMost, sizes.data()) != shape.size()) return "its pieces have other dims than it has";
        Shape chunk;
        for (int d = 0; d < shape.size(); ++d) chunk.push_back(static_cast<int64_t>(sizes[static_cast<size_t>(d)]));
        const auto whole = checked_bytes(chunk, element_bytes);
        if (!whole) return fmt::format("impossible pieces of {}", to_string(chunk));
        piece = *whole;
        if (H5Pget_nfilters(layout.get()) > 0) growth = kMostGrowth;
    }
    // Where it lies, as the library will look for it. Without this, one wrong byte in a description ends the process inside the library.
    const hsize_t stored = H5Dget_storage_size(dataset), end = static_cast<hsize_t>(file_bytes);
    if (stored > end) return fmt::format("damaged: it claims {} bytes of a file of {}", stored, file_bytes);
    if (kind != H5D_CHUNKED && static_cast<int64_t>(stored) != *bytes)
        return fmt::format("damaged, or never written: {} bytes are stored of {} for {}", stored, *bytes, to_string(shape));
    if (kind == H5D_CONTIGUOUS && *bytes > 0) {
        const haddr_t begin = H5Dget_offset(dataset);
        if (begin == HADDR_UNDEF || begin > end - stored) return "damaged, or never written: it lies outside of the file";
    }
    const int64_t most = std::max(*bytes, piece);
    if (most / growth <= file_bytes) return "";
    return fmt::format("damaged, or never written: {} bytes for {} cannot be in a file of {} bytes", most, to_string(shape), file_bytes);
}

struct OpenArray {
    Id dataset;
    Hdf5Array info;
};

}  // namespace

bool has_hdf5() { return true; }

bool is_hdf5(std::string_view bytes) { return bytes.substr(0, 8) == "\x89HDF\r\n\x1a\n"; }

struct Hdf5File::Impl {
    Impl() = default;
    ~Impl() {
        const Call call;
        arrays.clear();
        file = {};
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    std::string name;
    int64_t file_bytes = 0;
    Id file;
    std::map<std::string, OpenArray> arrays;
    std::map<std::string, std::string> refused;

    const OpenArray& find(const std::string& array) const {
        const auto at = arrays.find(array);
        if (at != arrays.end()) return at->second;
        const auto why = refused.find(array);
        require(why == refused.end(), "{}: array \"{}\": {}", name, array, why == refused.end() ? "" : why->second);
        std::vector<std::string> known;
        for (const auto& [other, unused] : arrays) known.push_back(other);
        fail("{}: expected an array \"{}\", found {}", name, array, known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
    }

    // Opens one array, or remembers why it cannot be read.
    void add(const std::string& array) {
        OpenArray open{Id(H5Dopen2(file.get(), array.c_str(), H5P_DEFAULT), H5Dclose), {}};
        if (!open.dataset.valid()) return refuse(array, last_error());
        const Id space(H5Dget_space(open.dataset.get()), H5Sclose), type(H5Dget_type(open.dataset.get()), H5Tclose);
        if (!space.valid() || !type.valid()) return refuse(array, last_error());
        const int rank = H5Sget_simple_extent_ndims(space.get());
        if (rank < 0 || rank > Dims::kMost) return refuse(array, fmt::format("expected at most {} dims, found {}", Dims::kMost, rank));
        std::array<hsize_t, Dims::kMost> sizes{};
        H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
        for (int d = 0; d < rank; ++d) open.info.shape.push_back(static_cast<int64_t>(sizes[static_cast<size_t>(d)]));
        const auto kept = kept_type(type.get());
        if (!kept) return refuse(array, "expected numbers (8, 16, 32 or 64 bits), found another type");
        open.info.dtype = *kept;
        open.info.element_bytes = static_cast<int64_t>(H5Tget_size(type.get()));
        const std::string why = impossible(open.dataset.get(), open.info.shape, open.info.element_bytes, file_bytes);
        if (!why.empty()) return refuse(array, why);
        arrays.emplace(array, std::move(open));
    }
    void refuse(const std::string& array, const std::string& why) { refused.emplace(array, why); }
};

Hdf5File::Hdf5File(const std::filesystem::path& path) : impl_(std::make_unique<Impl>()) {
    const Call call;
    impl_->name = path.string();
    std::error_code failed;
    require(std::filesystem::exists(path, failed), "cannot open {}: there is no such file", path.string());
    const auto bytes = std::filesystem::file_size(path, failed);
    require(!failed, "cannot open {}: {}", path.string(), failed.message());
    impl_->file_bytes = static_cast<int64_t>(bytes);
    // Boxes are read with exactly the bytes that they need: the library's own reading ahead would read the neighbours' as well.
    const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_sieve_buf_size(access.get(), 1);
    impl_->file = Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
    require(impl_->file.valid(), "{}: not a readable HDF5 file: {}", path.string(), last_error());
    const H5L_iterate_t note = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
    };
    std::vector<std::string> links;
    require(H5Literate(impl_->file.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, note, &links) >= 0, "{}: damaged HDF5 file: {}",
            path.string(), last_error());
    for (const std::string& link : links) {
        H5L_info_t kind;
        if (H5Lget_info(impl_->file.get(), link.c_str(), &kind, H5P_DEFAULT) < 0 || kind.type == H5L_TYPE_EXTERNAL) {
            impl_->refuse(link, "expected an array in the file itself, found a link to another one");
            continue;
        }
        H5O_info_t object;
        if (H5Oget_info_by_name2(impl_->file.get(), link.c_str(), &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
            impl_->refuse(link, last_error());
        else if (object.type == H5O_TYPE_DATASET)
            impl_->add(link);
    }
}

Hdf5File::~Hdf5File() = default;
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;

std::vector<std::string> Hdf5File::names() const {
    std::vector<std::string> result;
    for (const auto& [name, unused] : impl_->arrays) result.push_back(name);
    return result;
}

const Hdf5Array& Hdf5File::array(const std::string& name) const { return impl_->find(name).info; }

std::optional<int64_t> Hdf5File::attribute(const std::string& array, const std::string& name) const {
    const Call call;
    const hid_t dataset = impl_->find(array).dataset.get();
    if (H5Aexists(dataset, name.c_str()) <= 0) return std::nullopt;
    const Id attribute(H5Aopen(dataset, name.c_str(), H5P_DEFAULT), H5Aclose);
    require(attribute.valid(), "{}: attribute \"{}\" of \"{}\": {}", impl_->name, name, array, last_error());
    const Id space(H5Aget_space(attribute.get()), H5Sclose), type(H5Aget_type(attribute.get()), H5Tclose);
    require(H5Sget_simple_extent_npoints(space.get()) == 1 && H5Tget_class(type.get()) == H5T_INTEGER,
            "{}: attribute \"{}\" of \"{}\": expected one integer", impl_->name, name, array);
    int64_t value = 0;
    require(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) >= 0, "{}: attribute \"{}\" of \"{}\": {}", impl_->name, name, array,
            last_error());
    return value;
}

void Hdf5File::read(const std::string& name, const Box& box, DType type, void* out) const {
    const Call call;
    const OpenArray& open = impl_->find(name);
    CONVOY_CHECK(contains(Box::whole(open.info.shape), box), "{}: box {} of \"{}\" {}", impl_->name, to_string(box), name,
                 to_string(open.info.shape));
    if (box.empty()) return;
    const Id space(H5Dget_space(open.dataset.get()), H5Sclose);
    const int rank = box.shape.size();
    std::array<hsize_t, Dims::kMost> start{}, count{};
    for (int d = 0; d < rank; ++d) {
        start[static_cast<size_t>(d)] = static_cast<hsize_t>(box.origin[d]);
        count[static_cast<size_t>(d)] = static_cast<hsize_t>(box.shape[d]);
    }
    const Id memory(rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, count.data(), nullptr), H5Sclose);
    if (rank > 0) H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    require(H5Dread(open.dataset.get(), native(type), memory.get(), space.get(), H5P_DEFAULT, out) >= 0, "{}: cannot read \"{}\": {}",
            impl_->name, name, last_error());
}

Tensor Hdf5File::read(const std::string& name, const Box& box) const {
    Tensor tensor(box.shape, array(name).dtype);
    read(name, box, tensor.dtype(), tensor.data());
    return tensor;
}

struct Hdf5Writer::Impl {
    Impl() = default;
    ~Impl() {
        const Call call;
        file = {};
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    std::filesystem::path path;
    Id file;
};

Hdf5Writer::Hdf5Writer(std::filesystem::path path) : impl_(std::make_unique<Impl>()) {
    const Call call;
    impl_->path = std::move(path);
    constexpr size_t kGrowth = size_t{1} << 20;
    const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fapl_core(access.get(), kGrowth, false);
    // The name is never opened: the file lives in memory. It must be another for each file that is open.
    const std::string name = fmt::format("{}@{}", impl_->path.string(), static_cast<const void*>(this));
    impl_->file = Id(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
    require(impl_->file.valid(), "{}: cannot make an HDF5 file: {}", impl_->path.string(), last_error());
}

Hdf5Writer::~Hdf5Writer() = default;

void Hdf5Writer::write(const std::string& name, const Tensor& tensor, const Shape& chunk) {
    const Call call;
    const hid_t type = native(tensor.dtype());
    require(type >= 0, "{}: cannot write \"{}\": HDF5 files here hold f64, f32, i64, i32 or u8, not {}", impl_->path.string(), name,
            name_of(tensor.dtype()));
    const auto sizes = [](const Shape& shape) {
        std::vector<hsize_t> result(shape.begin(), shape.end());
        return result;
    };
    const auto extent = sizes(tensor.shape());
    const Id space(extent.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(tensor.shape().size(), extent.data(), nullptr), H5Sclose);
    const Id layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (!chunk.empty()) {
        H5Pset_chunk(layout.get(), chunk.size(), sizes(chunk).data());
        H5Pset_deflate(layout.get(), 1);
    }
    const Id dataset(H5Dcreate2(impl_->file.get(), name.c_str(), type, space.get(), H5P_DEFAULT, layout.get(), H5P_DEFAULT), H5Dclose);
    require(dataset.valid(), "{}: cannot write \"{}\": {}", impl_->path.string(), name, last_error());
    require(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data()) >= 0, "{}: cannot write \"{}\": {}",
            impl_->path.string(), name, last_error());
}

void Hdf5Writer::attribute(const std::string& array, const std::string& name, int64_t value) {
    const Call call;
    const Id dataset(H5Dopen2(impl_->file.get(), array.c_str(), H5P_DEFAULT), H5Dclose), space(H5Screate(H5S_SCALAR), H5Sclose);
    CONVOY_CHECK(dataset.valid(), "{}: an attribute of \"{}\", which was not written", impl_->path.string(), array);
    const Id attribute(H5Acreate2(dataset.get(), name.c_str(), H5T_NATIVE_INT64, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    require(attribute.valid() && H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value) >= 0,
            "{}: cannot write attribute \"{}\" of \"{}\": {}", impl_->path.string(), name, array, last_error());
}

void Hdf5Writer::commit() {
    const Call call;
    H5Fflush(impl_->file.get(), H5F_SCOPE_GLOBAL);
    const auto size = H5Fget_file_image(impl_->file.get(), nullptr, 0);
    require(size > 0, "{}: cannot make an HDF5 file: {}", impl_->path.string(), last_error());
    std::string bytes(static_cast<size_t>(size), '\0');
    require(H5Fget_file_image(impl_->file.get(), bytes.data(), bytes.size()) == size, "{}: cannot make an HDF5 file: {}",
            impl_->path.string(), last_error());
    write_file(impl_->path, bytes);
}

}  // namespace convoy
