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

constexpr size_t block = 512;
constexpr size_t longest_extension = size_t{1} << 20;  // maximum bytes of a long name, or of pax records

/// Where fields of a header begin, and how long they are (POSIX 1003.1, ustar).
struct Field {
  size_t at, size;
};
constexpr Field name_field{0, 100}, size_field{124, 12}, sum_field{148, 8}, magic_field{257, 6},
    prefix_field{345, 155};
constexpr size_t kind_byte = 156;

/// An archive and the position that reading has reached.
class Reader {
 public:
  Reader(std::string_view archive, std::string_view name) : archive_(archive), name_(name) {}

  template <class... Parts>
  [[noreturn]] void refuse(size_t at, const Parts&... parts) const {
    fail(Fault::data, name_, ": byte ", at, ": ", parts...,
         " Nothing was unpacked; fetch the archive again.");
  }

  /// Takes the next block as a header; false at the two blocks of zeros that end an archive.
  bool next_header() {
    header_at_ = at_;
    header_ = take(block, "a header");
    if (header_.find_first_not_of('\0') != std::string_view::npos) {
      check_sum();
      return true;
    }
    const std::string_view rest = archive_.substr(at_);
    const size_t first = rest.find_first_not_of('\0');
    if (rest.size() < block || first != std::string_view::npos) {
      refuse(at_ + std::min(first, rest.size()), "the archive does not end with two blocks of zeros.");
    }
    return false;
  }

  size_t header_at() const { return header_at_; }
  char kind() const { return header_[kind_byte]; }

  /// A field up to its first NUL.
  std::string_view text_of(const Field& field) const {
    const std::string_view raw = header_.substr(field.at, field.size);
    return raw.substr(0, raw.find('\0'));
  }

  /// The name in the header, its prefix before it.
  std::string plain_name() const {
    std::string name(text_of(name_field));
    // GNU tar keeps other data in the place of the prefix.
    const bool prefixed = header_.substr(magic_field.at, magic_field.size) == std::string_view("ustar\0", 6);
    const std::string_view prefix = prefixed ? text_of(prefix_field) : std::string_view();
    return prefix.empty() ? name : text(prefix, "/", name);
  }

  /// The bytes of the entry, which end where the next header begins.
  std::string_view body(size_t max_bytes = std::string_view::npos) {
    const uint64_t size = number(size_field, "size");
    if (size > max_bytes)
      refuse(header_at_, "an entry that names another has ", size, " bytes; at most ", max_bytes, ".");
    if (size > archive_.size() - at_)
      refuse(header_at_, "an entry announces ", size, " bytes; ", archive_.size() - at_, " are left.");
    const std::string_view bytes = archive_.substr(at_, size);
    at_ += size;
    const size_t padding = (block - size % block) % block;
    take(padding, "the end of an entry");
    return bytes;
  }

 private:
  std::string_view take(size_t count, std::string_view what) {
    if (count > archive_.size() - at_) {
      refuse(at_, "the archive is cut short: ", what, " of ", count, " bytes is needed, ",
             archive_.size() - at_, " are left.");
    }
    at_ += count;
    return archive_.substr(at_ - count, count);
  }

  /// Octal digits, with blanks or a NUL around.
  uint64_t number(const Field& field, std::string_view what) const {
    std::string_view digits = text_of(field);
    while (digits.starts_with(' ')) digits.remove_prefix(1);
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    if (digits.empty() || fault != std::errc() || end != digits.data() + digits.size())
      refuse(header_at_ + field.at, "the ", what, " of an entry is no octal number.");
    return value;
  }

  void check_sum() const {
    uint64_t sum = 0;
    for (size_t i = 0; i < block; ++i) {
      const bool in_sum_field = i >= sum_field.at && i < sum_field.at + sum_field.size;
      sum += in_sum_field ? uint64_t{' '} : static_cast<unsigned char>(header_[i]);
    }
    if (number(sum_field, "sum") != sum)
      refuse(header_at_, "the sum of a header does not fit. Is this a tar archive?");
  }

  std::string_view archive_, name_, header_;
  size_t at_ = 0, header_at_ = 0;
};

/// The path among pax records, each `LENGTH KEY=VALUE\n`; empty where there is none.
std::string pax_path(const Reader& in, std::string_view records) {
  std::string path;
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, fault] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (fault != std::errc() || length > records.size() || length < digits + 3 || records[digits] != ' ' ||
        records[length - 1] != '\n') {
      in.refuse(in.header_at(), "the pax records of an entry are damaged.");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) in.refuse(in.header_at(), "a pax record has no '='.");
    const std::string_view key = record.substr(0, equals);
    if (key == "path") path = record.substr(equals + 1);
    if (key == "size" || key == "linkpath" || key.starts_with("GNU.sparse"))
      in.refuse(in.header_at(), "the pax record '", shown(key), "' is not accepted.");
    records.remove_prefix(length);
  }
  return path;
}

}  // namespace

std::vector<TarEntry> untar(std::string_view archive, std::string_view archive_name,
                            const TarLimits& limits) {
  Reader in(archive, archive_name);
  std::vector<TarEntry> entries;
  std::unordered_set<std::string> names;
  std::string long_name;  // name of the next entry, where an entry before it gives one
  int64_t count = 0;
  while (in.next_header()) {
    if (++count > limits.entries)
      in.refuse(in.header_at(), "more than the ", limits.entries, " entries that are accepted.");
    const char kind = in.kind();
    if (kind == 'L') {
      long_name = in.body(longest_extension);
      long_name.resize(std::min(long_name.find('\0'), long_name.size()));
      continue;
    }
    if (kind == 'x' || kind == 'g') {
      const std::string path = pax_path(in, in.body(longest_extension));
      if (kind == 'g' && !path.empty()) in.refuse(in.header_at(), "one path is given to all entries.");
      if (!path.empty()) long_name = path;
      continue;
    }
    std::string name = long_name.empty() ? in.plain_name() : long_name;
    long_name.clear();
    if (name.starts_with("./")) name.erase(0, 2);
    // Before ustar, only a slash at the end of the name marked a folder.
    const bool folder = kind == '5' || (kind == '\0' && name.ends_with('/'));
    const bool file = !folder && (kind == '0' || kind == '\0' || kind == '7');
    if (!folder && !file) {
      in.refuse(in.header_at(), "the entry '", shown(name), "' is ",
                kind == '1' || kind == '2' ? "a link." : "neither a file nor a folder.");
    }
    if (folder && name.empty()) continue;  // `./` itself
    if (const std::string wrong = fault_of_entry_name(name); !wrong.empty())
      in.refuse(in.header_at(), "the entry '", shown(name), "' ", wrong);
    if (file && name.ends_with('/'))
      in.refuse(in.header_at(), "the file '", shown(name), "' is named as a folder.");
    const size_t at = in.header_at();
    const std::string_view bytes = in.body();
    if (folder && !bytes.empty()) in.refuse(at, "the folder '", shown(name), "' has bytes.");
    if (folder) continue;
    if (!names.insert(name).second) in.refuse(at, "the entry '", shown(name), "' is there twice.");
    entries.push_back({.name = std::move(name), .bytes = bytes});
  }
  if (!long_name.empty())
    in.refuse(in.header_at(), "the archive ends with the name of an entry that is not there.");
  return entries;
}

}  // namespace heed
