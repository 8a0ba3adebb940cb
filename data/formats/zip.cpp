// The zip reader: it follows the directory at the end of the file, and every entry must agree with it.
#include "heed/data/formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <set>

#include "heed/core/error.h"
#include "heed/data/formats/archive_names.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr uint32_t end_mark = 0x06054b50, directory_mark = 0x02014b50, entry_mark = 0x04034b50;
constexpr size_t end_bytes = 22, directory_bytes = 46, entry_bytes = 30;
constexpr uint32_t stored = 0, deflated = 8;
constexpr uint32_t encrypted = 1, strong_encryption = 1 << 6, masked = 1 << 13;
constexpr uint32_t unix_system = 3, file_type = 0xF000, link_type = 0xA000, folder_type = 0x4000,
                   regular_type = 0x8000;

/// Little-endian numbers of an archive; reading past its end is refused.
struct ZipBytes {
  std::string_view bytes;
  std::string_view name;

  template <class... Parts>
  [[noreturn]] void refuse(uint64_t at, const Parts&... parts) const {
    fail(Fault::data, name, ": byte ", at, ": ", parts..., " Nothing was unpacked; fetch the archive again.");
  }
  template <class... Parts>
  [[noreturn]] void refuse_entry(uint64_t at, std::string_view entry, const Parts&... parts) const {
    refuse(at, "the entry '", shown(entry), "' ", parts...);
  }
  std::string_view part(uint64_t at, uint64_t count) const {
    if (at > bytes.size() || count > bytes.size() - at) {
      refuse(at, "the archive is cut short: ", count, " bytes are needed here, of ", bytes.size(),
             " in all.");
    }
    return bytes.substr(at, count);
  }
  uint32_t number(uint64_t at, int width) const {
    const std::string_view raw = part(at, static_cast<uint64_t>(width));
    uint32_t value = 0;
    for (int i = 0; i < width; ++i)
      value |= static_cast<uint32_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
    return value;
  }
};

/// A line of the directory.
struct DirectoryEntry {
  std::string name;
  uint32_t flags, method, crc, packed, size, offset, mode;
  uint64_t at;  ///< offset of the line in the archive
  bool folder() const { return name.ends_with('/'); }
};

/// The offset of the record that ends the archive: only a comment of up to 64 KiB may follow it.
size_t find_end(const ZipBytes& in) {
  const size_t size = in.bytes.size();
  if (size < end_bytes) in.refuse(0, size, " bytes are no zip archive.");
  const size_t lowest = size - std::min<size_t>(size, end_bytes + 0xFFFF);
  for (size_t at = size - end_bytes + 1; at-- > lowest;) {
    if (in.number(at, 4) == end_mark && at + end_bytes + in.number(at + 20, 2) == size) return at;
  }
  in.refuse(lowest, "this is no zip archive: from here on there is no record that ends it.");
}

DirectoryEntry read_directory_entry(const ZipBytes& in, uint64_t at) {
  if (in.number(at, 4) != directory_mark) in.refuse(at, "the directory is damaged.");
  DirectoryEntry entry{.name = std::string(in.part(at + directory_bytes, in.number(at + 28, 2))),
                       .flags = in.number(at + 8, 2),
                       .method = in.number(at + 10, 2),
                       .crc = in.number(at + 16, 4),
                       .packed = in.number(at + 20, 4),
                       .size = in.number(at + 24, 4),
                       .offset = in.number(at + 42, 4),
                       .mode = in.number(at + 5, 1) == unix_system ? in.number(at + 40, 2) : 0,
                       .at = at};
  if (const std::string wrong = fault_of_entry_name(entry.name); !wrong.empty())
    in.refuse_entry(at, entry.name, wrong);
  const uint32_t type = entry.mode & file_type;
  if (type == link_type) in.refuse_entry(at, entry.name, "is a symbolic link.");
  if (type != 0 && type != regular_type && type != folder_type) {
    in.refuse_entry(at, entry.name, "is neither a file nor a folder.");
  }
  if ((entry.flags & (encrypted | strong_encryption | masked)) != 0) {
    in.refuse_entry(at, entry.name, "is encrypted.");
  }
  if (entry.method != stored && entry.method != deflated) {
    in.refuse_entry(at, entry.name, "is packed by method ", entry.method, "; only 0 and 8 are read.");
  }
  if (entry.method == stored && entry.packed != entry.size) {
    in.refuse_entry(at, entry.name, "is stored, but its two sizes differ.");
  }
  if (entry.size / 1100 > entry.packed) {  // deflate compresses by 1032 at most
    in.refuse_entry(at, entry.name, "announces ", entry.size, " bytes out of ", entry.packed, ".");
  }
  return entry;
}

/// Where the bytes of an entry lie; checks that the entry begins as the directory says.
struct Span {
  uint64_t begin, data, end;
};
Span span_of(const ZipBytes& in, const DirectoryEntry& entry, uint64_t directory) {
  const uint64_t at = entry.offset;
  if (in.number(at, 4) != entry_mark)
    in.refuse_entry(at, entry.name, "is not here, where the directory says.");
  const uint32_t name_bytes = in.number(at + 26, 2);
  const uint64_t begin = at + entry_bytes + name_bytes + in.number(at + 28, 2);
  if (in.part(at + entry_bytes, name_bytes) != entry.name || in.number(at + 8, 2) != entry.method) {
    in.refuse_entry(at, entry.name, "is called otherwise where it begins.");
  }
  if (begin + entry.packed > directory) in.refuse_entry(at, entry.name, "reaches into the directory.");
  return {.begin = at, .data = begin, .end = begin + entry.packed};
}

/// Inflates raw deflate data of known size; never produces more bytes than that.
std::string inflate_raw(const ZipBytes& in, const DirectoryEntry& entry, std::string_view packed) {
  std::string out(entry.size + size_t{1}, '\0');  // one more, to see an entry that holds too much
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) fail(Fault::memory, "zip: no memory for the decoder");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int state = inflate(&stream, Z_FINISH);
  const bool is_complete = state == Z_STREAM_END && stream.avail_in == 0 && stream.total_out == entry.size;
  inflateEnd(&stream);
  if (!is_complete)
    in.refuse_entry(entry.at, entry.name, "does not inflate to the ", entry.size, " bytes it announces.");
  out.resize(entry.size);
  return out;
}

std::string unpack(const ZipBytes& in, const DirectoryEntry& entry, const Span& span) {
  const std::string_view packed = in.part(span.data, entry.packed);
  std::string bytes = entry.method == stored ? std::string(packed) : inflate_raw(in, entry, packed);
  const auto crc =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  if (crc != entry.crc) in.refuse_entry(entry.at, entry.name, "does not match its CRC-32.");
  return bytes;
}

}  // namespace

std::vector<ZipEntry> unzip(std::string_view archive, std::string_view name, const ZipLimits& limits) {
  const ZipBytes in{archive, name};
  const size_t end = find_end(in);
  const uint32_t count = in.number(end + 10, 2);
  const uint64_t directory = in.number(end + 16, 4);
  if (in.number(end + 4, 2) != 0 || in.number(end + 6, 2) != 0 || in.number(end + 8, 2) != count) {
    in.refuse(end, "the archive is one of several volumes.");
  }
  if (directory + in.number(end + 12, 4) != end)
    in.refuse(end, "the directory is not where this end record says.");
  if (static_cast<int64_t>(count) > limits.entries) {
    in.refuse(end, count, " entries; at most ", limits.entries, " are accepted.");
  }
  std::vector<DirectoryEntry> listed;
  std::set<std::string> names;
  int64_t total = 0;
  uint64_t at = directory;
  for (uint32_t i = 0; i < count; ++i) {
    listed.push_back(read_directory_entry(in, at));
    const DirectoryEntry& entry = listed.back();
    at += directory_bytes + entry.name.size() + in.number(at + 30, 2) + in.number(at + 32, 2);
    total += entry.size;
    if (total > limits.bytes) {
      in.refuse(entry.at, "the entries unpack to more than the ", limits.bytes, " bytes that are accepted.");
    }
    if (!names.insert(entry.name).second) in.refuse_entry(entry.at, entry.name, "is there twice.");
  }
  if (at != end) in.refuse(at, "the directory has bytes after its last entry.");
  // Entries that share bytes would unpack to more than the archive can hold.
  std::vector<Span> spans;
  for (const DirectoryEntry& entry : listed) spans.push_back(span_of(in, entry, directory));
  std::vector<Span> sorted = spans;
  std::sort(sorted.begin(), sorted.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].begin < sorted[i - 1].end) in.refuse(sorted[i].begin, "two entries overlap.");
  }
  std::vector<ZipEntry> entries;
  for (size_t i = 0; i < listed.size(); ++i) {
    if (listed[i].folder()) continue;
    entries.push_back({.name = listed[i].name, .bytes = unpack(in, listed[i], spans[i])});
  }
  return entries;
}

}  // namespace heed
