// Writes zip archives for tests, valid and malformed.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "heed/tests/catch.h"

namespace heed {

/// One entry; the defaults are valid.
struct ZipPart {
  std::string name = {};
  std::string bytes = {};
  bool deflated = true;
  uint32_t unix_mode = 0100644;
  uint32_t flags = 0;
  int64_t claimed_size = -1;  ///< instead of the real size
  int64_t claimed_crc = -1;
  std::string local_name = {};  ///< name in the local header, if it differs
};

inline std::string little(uint64_t value, int width) {
  std::string out;
  for (int i = 0; i < width; ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
  return out;
}

inline std::string raw_deflate(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// An archive of these entries, with a comment at its end.
inline std::string make_zip(const std::vector<ZipPart>& parts, const std::string& comment = "") {
  std::string out, directory;
  for (const ZipPart& part : parts) {
    const std::string packed = part.deflated ? raw_deflate(part.bytes) : part.bytes;
    const auto crc = part.claimed_crc >= 0
                         ? static_cast<uint64_t>(part.claimed_crc)
                         : crc32_z(0, reinterpret_cast<const Bytef*>(part.bytes.data()), part.bytes.size());
    const uint64_t size =
        part.claimed_size >= 0 ? static_cast<uint64_t>(part.claimed_size) : part.bytes.size();
    const std::string& local = part.local_name.empty() ? part.name : part.local_name;
    const std::string middle = little(part.flags, 2) + little(part.deflated ? 8 : 0, 2) + little(0, 4) +
                               little(crc, 4) + little(packed.size(), 4) + little(size, 4);
    directory += little(0x02014b50, 4) + little(20, 1) + little(3, 1) + little(20, 2) + middle +
                 little(part.name.size(), 2) + little(0, 8) + little(0, 2) + little(part.unix_mode, 2) +
                 little(out.size(), 4) + part.name;
    out += little(0x04034b50, 4) + little(20, 2) + middle + little(local.size(), 2) + little(0, 2) + local +
           packed;
  }
  const size_t begin = out.size();
  out += directory + little(0x06054b50, 4) + little(0, 4) + little(parts.size(), 2) +
         little(parts.size(), 2) + little(directory.size(), 4) + little(begin, 4) +
         little(comment.size(), 2) + comment;
  return out;
}

}  // namespace heed
