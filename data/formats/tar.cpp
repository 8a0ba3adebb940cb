// The tar reader: blocks of 512 bytes, a header before the bytes of each entry.
#include "heed/data/formats/tar.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "heed/core/error.h"
#include "heed/data/formats/archive_names.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr size_t block_bytes = 512;
constexpr size_t max_extension_bytes = size_t{1} << 20;  // maximum bytes of a long name, or of pax records

/// Offset and bytes of a field of a header (POSIX 1003.1, ustar).
struct HeaderField {
  size_t offset, size;
};
constexpr HeaderField name_field{0, 100}, size_field{124, 12}, sum_field{148, 8}, magic_field{257, 6},
    prefix_field{345, 155};
constexpr size_t kind_byte = 156;

/// An archive and the position that reading has reached.
class TarReader {
 public:
  TarReader(std::string_view archive, std::string_view name) : archive_(archive), name_(name) {}

  template <class... Parts>
  [[noreturn]] void refuse(size_t at, const Parts&... parts) const {
    fail(Fault::data, name_, ": byte ", at, ": ", parts...,
         " Nothing was unpacked; fetch the archive again.");
  }

  /// Takes the next block as a header; false at the two blocks of zeros that end an archive.
  bool next_header() {
    header_position_ = position_;
    header_ = take(block_bytes, "a header");
    if (header_.find_first_not_of('\0') != std::string_view::npos) {
      check_sum();
      return true;
    }
    const std::string_view rest = archive_.substr(position_);
    const size_t first_nonzero = rest.find_first_not_of('\0');
    if (rest.size() < block_bytes || first_nonzero != std::string_view::npos)
      refuse(position_ + std::min(first_nonzero, rest.size()),
             "the archive does not end with two blocks of zeros.");
    return false;
  }

  size_t header_position() const { return header_position_; }
  char kind() const { return header_[kind_byte]; }

  /// A field up to its first NUL.
  std::string_view text_of(const HeaderField& field) const {
    const std::string_view raw = header_.substr(field.offset, field.size);
    return raw.substr(0, raw.find('\0'));
  }

  /// The name in the header, with its prefix.
  std::string plain_name() const {
    std::string name(text_of(name_field));
    // Headers of GNU tar, which have another magic, keep other data in the place of the prefix.
    const bool has_prefix =
        header_.substr(magic_field.offset, magic_field.size) == std::string_view("ustar\0", 6);
    const std::string_view prefix = has_prefix ? text_of(prefix_field) : std::string_view();
    return prefix.empty() ? name : text(prefix, "/", name);
  }

  /// Takes the bytes of the entry and their padding, behind which the next header begins.
  std::string_view body(size_t max_bytes = std::string_view::npos) {
    const uint64_t size = number(size_field, "size");
    if (size > max_bytes)
      refuse(header_position_, "an entry that names another has ", size, " bytes; at most ", max_bytes, ".");
    if (size > archive_.size() - position_)
      refuse(header_position_, "an entry announces ", size, " bytes; ", archive_.size() - position_,
             " are left.");
    const std::string_view bytes = archive_.substr(position_, size);
    position_ += size;
    const size_t padding = (block_bytes - size % block_bytes) % block_bytes;
    take(padding, "the end of an entry");
    return bytes;
  }

 private:
  /// Takes the next bytes; fails where the archive is too short.
  std::string_view take(size_t count, std::string_view what) {
    if (count > archive_.size() - position_) {
      refuse(position_, "the archive is cut short: ", what, " of ", count, " bytes is needed, ",
             archive_.size() - position_, " are left.");
    }
    position_ += count;
    return archive_.substr(position_ - count, count);
  }

  /// The number of octal digits in a field, with blanks or a NUL around them.
  uint64_t number(const HeaderField& field, std::string_view what) const {
    std::string_view digits = text_of(field);
    while (digits.starts_with(' ')) digits.remove_prefix(1);
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    if (digits.empty() || fault != std::errc() || end != digits.data() + digits.size())
      refuse(header_position_ + field.offset, "the ", what, " of an entry is no octal number.");
    return value;
  }

  void check_sum() const {
    uint64_t sum = 0;
    for (size_t i = 0; i < block_bytes; ++i) {
      const bool in_sum_field = i >= sum_field.offset && i < sum_field.offset + sum_field.size;
      sum += in_sum_field ? uint64_t{' '} : static_cast<unsigned char>(header_[i]);
    }
    if (number(sum_field, "sum") != sum)
      refuse(header_position_, "the sum of a header does not fit. Is this a tar archive?");
  }

  std::string_view archive_, name_, header_;
  size_t position_ = 0, header_position_ = 0;
};

/// The path among pax records, each `LENGTH KEY=VALUE\n`; empty where there is none.
std::string pax_path(const TarReader& in, std::string_view records) {
  std::string path;
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, fault] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (fault != std::errc() || length > records.size() || length < digits + 3 || records[digits] != ' ' ||
        records[length - 1] != '\n') {
      in.refuse(in.header_position(), "the pax records of an entry are damaged.");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) in.refuse(in.header_position(), "a pax record has no '='.");
    const std::string_view key = record.substr(0, equals);
    if (key == "path") path = record.substr(equals + 1);
    if (key == "size" || key == "linkpath" || key.starts_with("GNU.sparse"))
      in.refuse(in.header_position(), "the pax record '", shown(key), "' is not accepted.");
    records.remove_prefix(length);
  }
  return path;
}

}  // namespace

std::vector<TarEntry> untar(std::string_view archive, std::string_view archive_name,
                            const TarLimits& limits) {
  TarReader in(archive, archive_name);
  std::vector<TarEntry> entries;
  std::unordered_set<std::string> names;
  std::string long_name;  // name of the next entry, where an entry before it gives one
  int64_t count = 0;
  while (in.next_header()) {
    if (++count > limits.entries)
      in.refuse(in.header_position(), "more than the ", limits.entries, " entries that are accepted.");
    const char kind = in.kind();
    if (kind == 'L') {
      long_name = in.body(max_extension_bytes);
      long_name.resize(std::min(long_name.find('\0'), long_name.size()));
      continue;
    }
    if (kind == 'x' || kind == 'g') {
      const std::string path = pax_path(in, in.body(max_extension_bytes));
      if (kind == 'g' && !path.empty()) in.refuse(in.header_position(), "one path is given to all entries.");
      if (!path.empty()) long_name = path;
      continue;
    }
    std::string name = long_name.empty() ? in.plain_name() : long_name;
    long_name.clear();
    if (name.starts_with("./")) name.erase(0, 2);
    // Before ustar, only a slash at the end of the name marked a folder.
    const bool is_folder = kind == '5' || (kind == '\0' && name.ends_with('/'));
    const bool is_file = !is_folder && (kind == '0' || kind == '\0' || kind == '7');
    if (!is_folder && !is_file) {
      in.refuse(in.header_position(), "the entry '", shown(name), "' is ",
                kind == '1' || kind == '2' ? "a link." : "neither a file nor a folder.");
    }
    if (is_folder && name.empty()) continue;  // the folder `./`
    if (const std::string wrong = fault_of_entry_name(name); !wrong.empty())
      in.refuse(in.header_position(), "the entry '", shown(name), "' ", wrong);
    if (is_file && name.ends_with('/'))
      in.refuse(in.header_position(), "the file '", shown(name), "' is named as a folder.");
    const size_t at = in.header_position();
    const std::string_view bytes = in.body();
    if (is_folder && !bytes.empty()) in.refuse(at, "the folder '", shown(name), "' has bytes.");
    if (is_folder) continue;
    if (!names.insert(name).second) in.refuse(at, "the entry '", shown(name), "' is there twice.");
    entries.push_back({.name = std::move(name), .bytes = bytes});
  }
  if (!long_name.empty())
    in.refuse(in.header_position(), "the archive ends with the name of an entry that is not there.");
  return entries;
}

}  // namespace heed
