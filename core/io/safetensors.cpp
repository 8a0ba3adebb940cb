// Safetensors: eight bytes with the length of the header, a JSON header, then the numbers without gaps.
#include "heed/core/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "heed/core/io/file_descriptor.h"
#include "heed/core/io/files.h"
#include "heed/core/io/float_bytes.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/json.h"
#include "heed/core/io/safetensors_rules.h"

namespace heed {
namespace {

constexpr uint64_t max_safetensors_header = 100'000'000;
constexpr int64_t piece_bytes = 1 << 20;  // bytes that are read at once from the disk

/// The bytes of the header, which the first eight bytes of a file say.
uint64_t header_length(std::string_view file) {
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(file[i]);
  return length;
}

/// Reads and checks the header of one file. Every error names the file and the byte.
class HeaderReader {
 public:
  /// `beginning`: the file up to the end of its header at least; `size`: bytes of the whole file.
  HeaderReader(std::string_view beginning, int64_t size, std::string_view name)
      : beginning_(beginning), size_(size), name_(name) {}

  void read(std::vector<TensorEntry>& entries, std::map<std::string, std::string>& metadata) {
    const Json header = parse_header();
    for (const auto& [key, value] : header.members()) {
      if (key == "__metadata__") {
        read_metadata(value, metadata);
      } else {
        entries.push_back(entry(key, value));
      }
      if (static_cast<int64_t>(entries.size()) > max_tensors) {
        refuse(8, "it names more than ", max_tensors, " tensors");
      }
    }
    std::stable_sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
      return std::pair(a.offset, a.size) < std::pair(b.offset, b.size);
    });
    check_cover(entries);
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(int64_t offset, const Parts&... parts) const {
    fail(Fault::data, name_, " is not a safetensors file that can be trusted: ", text(parts...), " (at byte ",
         offset, "). Fetch it or save it again.");
  }

  Json parse_header() {
    if (size_ < 8) refuse(0, "it has ", size_, " bytes, too few for a header");
    const uint64_t length = header_length(beginning_);
    if (length > max_safetensors_header) {
      refuse(0, "it claims a header of ", length, " bytes, more than the ", max_safetensors_header,
             " allowed");
    }
    if (length > static_cast<uint64_t>(size_) - 8) {
      refuse(0, "it claims a header of ", length, " bytes, but only ", size_ - 8, " follow");
    }
    data_begin_ = 8 + static_cast<int64_t>(length);
    const std::string_view header = beginning_.substr(8, length);
    if (header.empty() || header.front() != '{') refuse(8, "its header does not begin with '{'");
    Json parsed;
    try {
      // A tensor has seven values and up to eight extents, a line of metadata one value.
      parsed = parse_json(header, "its header",
                          {.values = 16 * max_tensors, .depth = 3, .memory = int64_t{40} << 20});
    } catch (const Error& error) {
      std::string_view what = error.what();
      if (!what.empty() && what.back() == '.') what.remove_suffix(1);
      refuse(8, what);
    }
    return parsed;
  }

  void read_metadata(const Json& value, std::map<std::string, std::string>& metadata) {
    if (!value.is_object()) refuse(8, "its __metadata__ is not an object");
    for (const auto& [key, line] : value.members()) {
      if (!line.is_text()) refuse(8, "the metadata '", shown(key), "' is not text");
      metadata[key] = line.text();
    }
  }

  std::vector<int64_t> whole_numbers(const Json& value, std::string_view tensor,
                                     std::string_view what) const {
    if (!value.is_list()) refuse(8, "the ", what, " of tensor '", tensor, "' is not a list");
    std::vector<int64_t> numbers;
    for (const Json& number : value.list()) {
      if (!number.is_integer() || number.integer() < 0) {
        refuse(8, "the ", what, " of tensor '", tensor,
               "' has something that is not a whole number in range");
      }
      numbers.push_back(number.integer());
    }
    return numbers;
  }

  const Json& member(const Json& value, std::string_view tensor, std::string_view key) const {
    if (!value.is_object()) refuse(8, "tensor '", tensor, "' is not described by an object");
    if (const Json* found = value.find(key)) return *found;
    refuse(8, "tensor '", tensor, "' has no ", key);
  }

  /// The entry of a tensor, from its object in the header.
  TensorEntry entry(const std::string& tensor, const Json& value) const {
    const std::string name = shown(tensor);
    if (!is_tensor_name(tensor)) {
      refuse(8, "the tensor name '", name, "' is empty, longer than 256 bytes or not printable");
    }
    const Json& dtype = member(value, name, "dtype");
    TensorEntry made{
        .name = tensor, .dtype = {}, .shape = whole_numbers(member(value, name, "shape"), name, "shape")};
    if (value.members().size() != 3) refuse(8, "tensor '", name, "' has members that are not known");
    if (!dtype.is_text()) refuse(8, "the dtype of tensor '", name, "' is not text");
    for (const auto& [theirs, ours] : safetensors_types) {
      if (dtype.text() == theirs) made.dtype = ours;
    }
    if (made.dtype.empty()) {
      refuse(8, "tensor '", name, "' has the dtype '", shown(dtype.text()),
             "'; F32, F64, BF16, F16, I32, I64 and U8 can be read");
    }
    if (made.shape.size() > max_safetensors_rank) {
      refuse(8, "tensor '", name, "' has ", static_cast<int64_t>(made.shape.size()), " extents, more than 8");
    }
    const std::vector<int64_t> span =
        whole_numbers(member(value, name, "data_offsets"), name, "data_offsets");
    if (span.size() != 2 || span[0] > span[1]) {
      refuse(8, "the data_offsets of tensor '", name, "' are not a begin and an end");
    }
    const int64_t data_bytes = size_ - data_begin_;
    if (span[1] > data_bytes) {
      refuse(data_begin_, "tensor '", name, "' ends at byte ", span[1], " of the data, which has ",
             data_bytes);
    }
    made.offset = data_begin_ + span[0];
    made.size = span[1] - span[0];
    const int64_t needed = array_bytes(made.shape, safetensors_item_bytes(made.dtype));
    if (needed < 0) refuse(made.offset, "the extents of tensor '", name, "' multiply out of range");
    if (needed != made.size) {
      refuse(made.offset, "tensor '", name, "' needs ", needed, " bytes by its shape and has ", made.size);
    }
    return made;
  }

  /// Fails unless the tensors, sorted by offset, cover the data without holes and overlaps.
  void check_cover(const std::vector<TensorEntry>& entries) const {
    int64_t at = data_begin_;
    for (const TensorEntry& entry : entries) {
      if (entry.offset != at) {
        refuse(at, "tensor '", shown(entry.name), "' ",
               entry.offset < at ? "overlaps the one before it" : "leaves a hole before it");
      }
      at += entry.size;
    }
    if (at != size_) {
      refuse(at, "its last ", size_ - at, " bytes belong to no tensor");
    }
  }

  std::string_view beginning_;
  int64_t size_;
  std::string_view name_;
  int64_t data_begin_ = 0;  // byte behind the header
};

}  // namespace

SafeTensors SafeTensors::parse(std::string bytes, std::string name) {
  SafeTensors made;
  HeaderReader(bytes, static_cast<int64_t>(bytes.size()), name).read(made.entries_, made.metadata_);
  made.file_ = std::move(bytes);
  made.name_ = std::move(name);
  return made;
}

SafeTensors SafeTensors::read(const Path& path) { return parse(io::read(path), path.string()); }

SafeTensors SafeTensors::open(const Path& path) {
  const auto file = std::make_shared<const io::Descriptor>(io::open_to_read(path));
  const auto size = static_cast<uint64_t>(io::status_of(*file).st_size);
  std::string beginning(std::min(size, uint64_t{8}), '\0');
  io::read_at(*file, 0, std::as_writable_bytes(std::span(beginning)));
  if (beginning.size() == 8) {
    beginning.resize(8 + std::min({header_length(beginning), max_safetensors_header, size - 8}));
    io::read_at(*file, 0, std::as_writable_bytes(std::span(beginning)));
  }
  SafeTensors made;
  made.name_ = path.string();
  HeaderReader(beginning, static_cast<int64_t>(size), made.name_).read(made.entries_, made.metadata_);
  made.open_ = file;
  return made;
}

const TensorEntry* SafeTensors::find(std::string_view tensor) const {
  for (const TensorEntry& entry : entries_) {
    if (entry.name == tensor) return &entry;
  }
  return nullptr;
}

const TensorEntry& SafeTensors::at(std::string_view tensor) const {
  if (const TensorEntry* found = find(tensor)) return *found;
  fail(Fault::data, name_, " has no tensor '", tensor, "' (it has ", static_cast<int64_t>(entries_.size()),
       "; they are named from byte 8 on). Was it saved by a model of another shape?");
}

std::span<const std::byte> SafeTensors::bytes(const TensorEntry& entry) const {
  if (open_) fail(Fault::internal, name_, ": bytes() of a file that is not in memory");
  return std::as_bytes(std::span(file_))
      .subspan(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.size));
}

void SafeTensors::copy(const TensorEntry& entry, int64_t first, std::span<std::byte> out) const {
  if (open_) return io::read_at(*open_, entry.offset + first, out);
  const auto held = bytes(entry).subspan(static_cast<size_t>(first), out.size());
  std::copy(held.begin(), held.end(), out.begin());
}

template <class F>
void SafeTensors::for_each_piece(const TensorEntry& entry, const F& f) const {
  if (!open_) return f(0, bytes(entry));
  std::vector<std::byte> piece;
  for (int64_t first = 0; first < entry.size; first += piece_bytes) {
    piece.resize(static_cast<size_t>(std::min(piece_bytes, entry.size - first)));
    copy(entry, first, piece);
    f(first, std::span<const std::byte>(piece));
  }
}

Array SafeTensors::array(std::string_view tensor) const {
  const TensorEntry& entry = at(tensor);
  Array out{.dtype = entry.dtype, .shape = entry.shape, .bytes = {}};
  out.bytes.resize(static_cast<size_t>(entry.size));
  copy(entry, 0, out.bytes);
  return out;
}

namespace {

/// The index of the first number that is NaN or infinite, which has all bits of `exponent` set; -1: none.
template <class Bits>
int64_t first_non_finite(std::span<const std::byte> numbers, Bits exponent) {
  for (size_t at = 0; at + sizeof(Bits) <= numbers.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, numbers.data() + at, sizeof bits);
    if ((bits & exponent) == exponent) return static_cast<int64_t>(at / sizeof bits);
  }
  return -1;
}

}  // namespace

void SafeTensors::check_finite(const TensorEntry& entry) const {
  const int64_t item = safetensors_item_bytes(entry.dtype);
  int64_t at = -1;
  for_each_piece(entry, [&](int64_t first, std::span<const std::byte> numbers) {
    if (at >= 0) return;
    if (entry.dtype == "f32") at = first_non_finite<uint32_t>(numbers, 0x7f800000);
    if (entry.dtype == "f64") at = first_non_finite<uint64_t>(numbers, 0x7ff0000000000000);
    if (entry.dtype == "bf16") at = first_non_finite<uint16_t>(numbers, 0x7f80);
    if (entry.dtype == "f16") at = first_non_finite<uint16_t>(numbers, 0x7c00);
    if (at >= 0) at += first / item;
  });
  if (at < 0) return;
  const int64_t byte = entry.offset + at * item;
  std::string index;
  for (auto extent = entry.shape.rbegin(); extent != entry.shape.rend(); ++extent) {
    index = text(at % *extent, index.empty() ? "" : ", ", index);
    at /= *extent;
  }
  fail(Fault::numeric, name_, ": tensor ", entry.name, " is not finite: its number [", index,
       "] is NaN or infinite (at byte ", byte,
       "). A model with such a weight computes nothing. Take another checkpoint or file, and look for the "
       "cause where this one was made.");
}

std::vector<float> SafeTensors::floats(const TensorEntry& entry) const {
  if (float_bytes(entry.dtype) == 0)
    fail(Fault::data, name_, ": ", entry.name, " is ", entry.dtype,
         ". Weights can be f32, bf16 or f16: save the model in one of these.");
  if (!open_) return floats_of(bytes(entry), entry.dtype);
  std::vector<float> out;
  out.reserve(static_cast<size_t>(entry.size / float_bytes(entry.dtype)));
  for_each_piece(entry, [&](int64_t, std::span<const std::byte> numbers) {
    const std::vector<float> more = floats_of(numbers, entry.dtype);
    out.insert(out.end(), more.begin(), more.end());
  });
  return out;
}

const TensorEntry* SafeTensors::damaged() const {
  for (const TensorEntry& entry : entries_) {
    const auto kept = metadata_.find(text(crc_prefix, entry.name));
    if (kept == metadata_.end()) continue;
    uint32_t sum = 0;
    for_each_piece(entry, [&](int64_t, std::span<const std::byte> bytes) {
      sum = crc32c({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, sum);
    });
    if (crc32c_text(sum) != kept->second) return &entry;
  }
  return nullptr;
}

}  // namespace heed
