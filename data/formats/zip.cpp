// The zip reader: it follows the directory at the end of the file, and every entry must agree with it. The
// writer stores.
#include "heed/data/formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <set>

#include "heed/core/error.h"
#include "heed/data/formats/archive_names.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr uint32_t end_mark = 0x06054b50, directory_mark = 0x02014b50, local_mark = 0x04034b50;
constexpr uint32_t zip64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr size_t zip64_record_bytes = 56, zip64_locator_bytes = 20;
constexpr size_t end_bytes = 22, directory_bytes = 46, local_header_bytes = 30;  // without names and comments

/// A little-endian number of a record: its offset from the record's begin, and its bytes.
struct NumberField {
  size_t offset;
  int width;
};
// The record that ends the archive.
constexpr NumberField this_volume{4, 2}, directory_volume{6, 2}, entries_here{8, 2}, entries_in_all{10, 2},
    directory_size{12, 4}, directory_offset{16, 4}, comment_size{20, 2};
/// Numbers of the record of zip64 and those of the last record that say the same; the upper halves are 0.
constexpr std::pair<NumberField, NumberField> zip64_twins[] = {{{24, 4}, entries_here},
                                                               {{32, 4}, entries_in_all},
                                                               {{40, 4}, directory_size},
                                                               {{48, 4}, directory_offset}};
// An entry of the directory.
constexpr NumberField made_by{5, 1}, flags_field{8, 2}, method_field{10, 2}, crc_field{16, 4},
    packed_size{20, 4}, full_size{24, 4}, name_size{28, 2}, extra_size{30, 2}, entry_comment_size{32, 2},
    attributes{40, 2}, local_offset{42, 4};
// The header before the bytes of an entry.
constexpr NumberField local_method{8, 2}, local_name_size{26, 2}, local_extra_size{28, 2};

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
  /// A field of the record that begins at `record`.
  uint32_t number(uint64_t record, NumberField field) const {
    const std::string_view raw = part(record + field.offset, static_cast<uint64_t>(field.width));
    uint32_t value = 0;
    for (int i = 0; i < field.width; ++i)
      value |= static_cast<uint32_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
    return value;
  }
  /// The mark with which a record begins.
  uint32_t mark(uint64_t record) const { return number(record, {0, 4}); }
};

/// An entry of the directory.
struct DirectoryEntry {
  std::string name;
  uint32_t flags, method, crc;
  uint32_t packed, size;  ///< bytes in the archive and unpacked
  uint32_t offset;        ///< offset of the local header in the archive
  uint32_t mode;          ///< type and permissions of Unix; 0 where another system made the archive
  uint64_t at;            ///< offset of this directory entry in the archive
  bool is_folder() const { return name.ends_with('/'); }
};

/// The offset of the record that ends the archive: only a comment of up to 64 KiB may follow it.
size_t find_end(const ZipBytes& in) {
  const size_t size = in.bytes.size();
  if (size < end_bytes) in.refuse(0, size, " bytes are no zip archive.");
  const size_t lowest = size - std::min<size_t>(size, end_bytes + 0xFFFF);
  for (size_t at = size - end_bytes + 1; at-- > lowest;) {
    if (in.mark(at) == end_mark && at + end_bytes + in.number(at, comment_size) == size) return at;
  }
  in.refuse(lowest, "this is no zip archive: from here on there is no record that ends it.");
}

/// Reads the directory entry at `at`; fails for entries that are not accepted.
DirectoryEntry read_directory_entry(const ZipBytes& in, uint64_t at) {
  if (in.mark(at) != directory_mark) in.refuse(at, "the directory is damaged.");
  DirectoryEntry entry{.name = std::string(in.part(at + directory_bytes, in.number(at, name_size))),
                       .flags = in.number(at, flags_field),
                       .method = in.number(at, method_field),
                       .crc = in.number(at, crc_field),
                       .packed = in.number(at, packed_size),
                       .size = in.number(at, full_size),
                       .offset = in.number(at, local_offset),
                       .mode = in.number(at, made_by) == unix_system ? in.number(at, attributes) : 0,
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

/// Offsets of an entry in the archive: its local header, its packed bytes, and their end.
struct EntrySpan {
  uint64_t header, data, end;
};

/// Finds the bytes of an entry; fails unless its local header agrees with the directory, which begins at
/// `directory`.
EntrySpan span_of(const ZipBytes& in, const DirectoryEntry& entry, uint64_t directory) {
  const uint64_t header = entry.offset;
  if (in.mark(header) != local_mark)
    in.refuse_entry(header, entry.name, "is not here, where the directory says.");
  const uint32_t name_bytes = in.number(header, local_name_size);
  const uint64_t data = header + local_header_bytes + name_bytes + in.number(header, local_extra_size);
  if (in.part(header + local_header_bytes, name_bytes) != entry.name ||
      in.number(header, local_method) != entry.method)
    in.refuse_entry(header, entry.name, "is called otherwise where it begins.");
  if (data + entry.packed > directory) in.refuse_entry(header, entry.name, "reaches into the directory.");
  return {.header = header, .data = data, .end = data + entry.packed};
}

/// Inflates raw deflate data of known size; never produces more bytes than that.
std::string inflate_raw(const ZipBytes& in, const DirectoryEntry& entry, std::string_view packed) {
  std::string out(entry.size + size_t{1}, '\0');  // one byte more shows an entry that holds too much
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

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void check_crc(const ZipBytes& in, const DirectoryEntry& entry, std::string_view bytes) {
  if (crc_of(bytes) != entry.crc) in.refuse_entry(entry.at, entry.name, "does not match its CRC-32.");
}

/// Appends the lowest `width` bytes of a number, little-endian.
void append_number(std::string& out, uint32_t value, int width) {
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

/// The unpacked bytes of an entry, whose CRC-32 is checked.
std::string unpack(const ZipBytes& in, const DirectoryEntry& entry, const EntrySpan& span) {
  const std::string_view packed = in.part(span.data, entry.packed);
  std::string bytes = entry.method == stored ? std::string(packed) : inflate_raw(in, entry, packed);
  check_crc(in, entry, bytes);
  return bytes;
}

/// An entry of the directory and its place.
struct PlacedEntry {
  DirectoryEntry entry;
  EntrySpan span;
};

/// Fails unless nothing lies between the directory and the record that ends the archive, or the two records
/// of zip64, which must agree with that record.
void check_directory_end(const ZipBytes& in, size_t end, uint64_t directory_end) {
  if (directory_end == end) return;
  if (directory_end + zip64_record_bytes + zip64_locator_bytes != end ||
      in.mark(directory_end) != zip64_mark || in.mark(directory_end + zip64_record_bytes) != locator_mark)
    in.refuse(end, "the directory is not where this end record says.");
  for (const auto& [wide, narrow] : zip64_twins) {
    if (in.number(directory_end, wide) != in.number(end, narrow) ||
        in.number(directory_end, {wide.offset + 4, 4}) != 0)
      in.refuse(directory_end,
                "the records of zip64 do not agree with the last record. An archive of 4 GiB or "
                "more cannot be read.");
  }
}

/// The entries of an archive, checked, in the order of its directory.
std::vector<PlacedEntry> placed_entries(const ZipBytes& in, const ZipLimits& limits) {
  const size_t end = find_end(in);
  const uint32_t count = in.number(end, entries_in_all);
  const uint64_t directory = in.number(end, directory_offset);
  if (in.number(end, this_volume) != 0 || in.number(end, directory_volume) != 0 ||
      in.number(end, entries_here) != count)
    in.refuse(end, "the archive is one of several volumes.");
  const uint64_t directory_end = directory + in.number(end, directory_size);
  check_directory_end(in, end, directory_end);
  if (static_cast<int64_t>(count) > limits.entries) {
    in.refuse(end, count, " entries; at most ", limits.entries, " are accepted.");
  }
  std::vector<PlacedEntry> out;
  std::set<std::string> names;
  int64_t total = 0;
  uint64_t at = directory;
  for (uint32_t i = 0; i < count; ++i) {
    out.push_back({read_directory_entry(in, at), {}});
    const DirectoryEntry& entry = out.back().entry;
    at += directory_bytes + entry.name.size() + in.number(at, extra_size) + in.number(at, entry_comment_size);
    total += entry.size;
    if (total > limits.bytes) {
      in.refuse(entry.at, "the entries unpack to more than the ", limits.bytes, " bytes that are accepted.");
    }
    if (!names.insert(entry.name).second) in.refuse_entry(entry.at, entry.name, "is there twice.");
  }
  if (at != directory_end) in.refuse(at, "the directory has bytes after its last entry.");
  // Entries that share bytes would unpack to more than the archive can hold.
  std::vector<EntrySpan> sorted;
  for (PlacedEntry& one : out) {
    one.span = span_of(in, one.entry, directory);
    sorted.push_back(one.span);
  }
  std::ranges::sort(sorted, {}, &EntrySpan::header);
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].header < sorted[i - 1].end) in.refuse(sorted[i].header, "two entries overlap.");
  }
  return out;
}

}  // namespace

std::vector<ZipEntry> unzip(std::string_view archive, std::string_view name, const ZipLimits& limits) {
  const ZipBytes in{archive, name};
  std::vector<ZipEntry> entries;
  for (const auto& [entry, span] : placed_entries(in, limits)) {
    if (!entry.is_folder()) entries.push_back({.name = entry.name, .bytes = unpack(in, entry, span)});
  }
  return entries;
}

std::vector<StoredEntry> stored_entries(std::string_view archive, std::string_view name,
                                        const ZipLimits& limits) {
  const ZipBytes in{archive, name};
  std::vector<StoredEntry> entries;
  for (const auto& [entry, span] : placed_entries(in, limits)) {
    if (entry.is_folder()) continue;
    if (entry.method != stored)
      in.refuse_entry(entry.at, entry.name, "is compressed; it must be stored, as PyTorch writes it.");
    const std::string_view bytes = in.part(span.data, entry.size);
    check_crc(in, entry, bytes);
    entries.push_back({.name = entry.name, .bytes = bytes});
  }
  return entries;
}

std::string stored_zip(const std::vector<StoredEntry>& entries) {
  constexpr uint64_t max_bytes = 0xFFFFFFFF;
  uint64_t total = end_bytes;
  for (const auto& [name, bytes] : entries)
    total += bytes.size() + 2 * name.size() + local_header_bytes + directory_bytes;
  if (total >= max_bytes || entries.size() >= 0xFFFF)
    fail("zip: ", entries.size(), " files of ", total,
         " bytes together; there can be 65534 files of less than 4 GiB. Write a smaller model.");
  std::string out, directory;
  for (const auto& [name, bytes] : entries) {
    const auto size = static_cast<uint32_t>(bytes.size()), offset = static_cast<uint32_t>(out.size());
    // Version 2.0, names in UTF-8, stored, no time, 1 January 1980.
    std::string shared;
    for (const uint32_t half : {20U, 0x800U, stored, 0U, 0x21U}) append_number(shared, half, 2);
    for (const uint32_t word : {crc_of(bytes), size, size}) append_number(shared, word, 4);
    append_number(shared, static_cast<uint32_t>(name.size()), 2);
    append_number(shared, 0, 2);
    append_number(out, local_mark, 4);
    out += shared + name;
    out += bytes;
    append_number(directory, directory_mark, 4);
    append_number(directory, 20, 2);
    directory += shared;
    directory.append(10, '\0');  // no comment, the first volume, no attributes
    append_number(directory, offset, 4);
    directory += name;
  }
  const auto offset = static_cast<uint32_t>(out.size());
  out += directory;
  append_number(out, end_mark, 4);
  append_number(out, 0, 4);
  for (int i = 0; i < 2; ++i) append_number(out, static_cast<uint32_t>(entries.size()), 2);
  append_number(out, static_cast<uint32_t>(directory.size()), 4);
  append_number(out, offset, 4);
  append_number(out, 0, 2);
  return out;
}

}  // namespace heed
