// For the tests of this folder: tar and zip files, byte by byte.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

namespace convoy {

// The header and the padded bytes of one file of a tar archive.
inline std::string tar_entry(const std::string& name, const std::string& bytes) {
    std::string header(512, '\0');
    const auto text = [&](size_t at, const std::string& value) { header.replace(at, value.size(), value); };
    text(0, name);
    text(100, "0000644");
    text(108, "0000000");
    text(116, "0000000");
    text(124, fmt::format("{:011o}", bytes.size()));
    text(136, "00000000000");
    text(148, "        ");
    text(156, "0");
    text(257, std::string("ustar\0"
                          "00",
                          8));
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    text(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

// A zip file with these entries, as they are or deflated.
inline std::string zip_file(const std::vector<std::pair<std::string, std::string>>& entries, bool packed) {
    const auto number = [](uint64_t value, int bytes) {
        std::string text;
        for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 255);
        return text;
    };
    std::string file, directory;
    for (const auto& [name, bytes] : entries) {
        std::string data = bytes;
        if (packed) {
            z_stream stream{};
            deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
            data.resize(deflateBound(&stream, bytes.size()));
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
            stream.avail_in = static_cast<uInt>(bytes.size());
            stream.next_out = reinterpret_cast<Bytef*>(data.data());
            stream.avail_out = static_cast<uInt>(data.size());
            deflate(&stream, Z_FINISH);
            data.resize(stream.total_out);
            deflateEnd(&stream);
        }
        const auto crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
        const std::string common = number(20, 2) + number(0, 2) + number(packed ? 8 : 0, 2) + number(0, 4) + number(crc, 4) +
                                   number(data.size(), 4) + number(bytes.size(), 4) + number(name.size(), 2) + number(0, 2);
        directory += "PK\x01\x02" + number(20, 2) + common + number(0, 10) + number(file.size(), 4) + name;
        file += "PK\x03\x04" + common + name + data;
    }
    const std::string end = "PK\x05\x06" + number(0, 4) + number(entries.size(), 2) + number(entries.size(), 2) +
                            number(directory.size(), 4) + number(file.size(), 4) + number(0, 2);
    return file + directory + end;
}

}  // namespace convoy
