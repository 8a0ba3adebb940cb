// Reads the header of GGUF files: counts, metadata, entries of tensors, then the numbers at aligned places.
#include "heed/core/io/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "heed/core/io/files.h"
#include "heed/core/io/safetensors.h"

namespace heed {
namespace {

constexpr uint64_t max_keys = 65'536;      // in the metadata of a file
constexpr int64_t max_values = 4'000'000;  // in all lists of the metadata together
constexpr uint64_t max_extent = uint64_t{1} << 40;

/// The types of metadata, by their numbers in files.
enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

/// Reads and checks the header of one file. Every error names the file and the byte.
class GgufReader {
 public:
  GgufReader(std::string_view file, std::string_view name) : file_(file), name_(name) {}

  void read(Json& metadata, std::vector<GgufTensor>& tensors) {
    if (!file_.starts_with("GGUF")) refuse(0, "it does not begin with GGUF");
    at_ = 4;
    const uint64_t version = number(4);
    if (version != 2 && version != 3) refuse(4, "its version is ", version, "; 2 and 3 can be read");
    const uint64_t num_tensors = number(8), num_keys = number(8);
    if (num_tensors > static_cast<uint64_t>(max_tensors))
      refuse(8, "it claims ", num_tensors, " tensors, more than the ", max_tensors, " allowed");
    if (num_keys > max_keys)
      refuse(16, "it claims ", num_keys, " keys, more than the ", max_keys, " allowed");
    read_metadata(metadata, num_keys);
    const int64_t alignment = alignment_of(metadata);
    std::set<std::string_view> names;
    for (uint64_t i = 0; i < num_tensors; ++i) tensors.push_back(tensor_entry(alignment));
    for (const GgufTensor& one : tensors) {
      if (!names.insert(one.name).second) refuse(at_, "it has the tensor '", shown(one.name), "' twice");
    }
    place(tensors, alignment);
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(size_t offset, const Parts&... parts) const {
    fail(Fault::data, name_, " is not a GGUF file that can be read: ", text(parts...), " (at byte ", offset,
         "). Fetch it or convert it again.");
  }

  /// Reads `count` bytes and moves past them; `what` names them in errors.
  std::string_view take(uint64_t count, std::string_view what) {
    if (count > file_.size() - at_)
      refuse(at_, what, " has ", count, " bytes, but only ", file_.size() - at_, " follow");
    const std::string_view out = file_.substr(at_, count);
    at_ += count;
    return out;
  }
  /// An unsigned number of `size` bytes, little-endian.
  uint64_t number(uint64_t size) {
    const std::string_view bytes = take(size, "a number");
    uint64_t out = 0;
    for (size_t i = bytes.size(); i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[i]);
    return out;
  }
  std::string_view string(std::string_view what) { return take(number(8), what); }

  void read_metadata(Json& metadata, uint64_t num_keys) {
    std::set<std::string> keys;
    for (uint64_t i = 0; i < num_keys; ++i) {
      const size_t begin = at_;
      const std::string key(string("a key"));
      if (!keys.insert(key).second) refuse(begin, "it has the key '", shown(key), "' twice");
      const uint64_t type = number(4);
      metadata.append(key, type == static_cast<uint64_t>(ValueType::list) ? list(key) : value(type, key));
    }
  }

  Json list(const std::string& key) {
    const size_t begin = at_;
    const uint64_t type = number(4), count = number(8);
    if (type == static_cast<uint64_t>(ValueType::list))
      refuse(begin, "'", shown(key), "' has a list of lists");
    if (count > static_cast<uint64_t>(max_values - num_values_) || count > file_.size() - at_)
      refuse(begin, "'", shown(key), "' claims a list of ", count, " values");
    num_values_ += static_cast<int64_t>(count);
    Json::List items;
    for (uint64_t i = 0; i < count; ++i) items.push_back(value(type, key));
    return items;
  }

  Json value(uint64_t type, const std::string& key) {
    const size_t begin = at_;
    switch (type > 12 ? ValueType::list : static_cast<ValueType>(type)) {
      case ValueType::u8:
        return number(1);
      case ValueType::i8:
        return static_cast<int8_t>(number(1));
      case ValueType::u16:
        return number(2);
      case ValueType::i16:
        return static_cast<int16_t>(number(2));
      case ValueType::u32:
        return number(4);
      case ValueType::i32:
        return static_cast<int32_t>(number(4));
      case ValueType::f32:
        return std::bit_cast<float>(static_cast<uint32_t>(number(4)));
      case ValueType::boolean:
        return number(1) != 0;
      case ValueType::text:
        return string(text("the text of '", shown(key), "'"));
      case ValueType::f64:
        return std::bit_cast<double>(number(8));
      case ValueType::u64:
      case ValueType::i64: {
        const auto whole = static_cast<int64_t>(number(8));
        if (whole < 0 && type == static_cast<uint64_t>(ValueType::u64))
          refuse(begin, "'", shown(key), "' is above 2^63");
        return whole;
      }
      case ValueType::list:
        break;
    }
    refuse(begin, "'", shown(key), "' has the type ", type, ", which GGUF does not have");
  }

  int64_t alignment_of(const Json& metadata) const {
    const Json* found = metadata.find("general.alignment");
    if (found == nullptr) return 32;
    const int64_t out = found->is_integer() ? found->integer() : 0;
    if (out < 1 || out > 65'536 || !std::has_single_bit(static_cast<uint64_t>(out)))
      refuse(at_, "general.alignment is ", shown(found->dump()), ". It must be a power of two up to 65536");
    return out;
  }

  /// The entry of a tensor; its offset is counted from the first tensor.
  GgufTensor tensor_entry(int64_t alignment) {
    const size_t begin = at_;
    GgufTensor out{.name = std::string(string("the name of a tensor"))};
    const std::string name = shown(out.name);
    if (out.name.empty() || out.name.size() > 256) refuse(begin, "a tensor's name has no or too many bytes");
    const uint64_t rank = number(4);
    if (rank > 4) refuse(begin, "tensor '", name, "' has ", rank, " extents, more than 4");
    uint64_t numbers = 1;
    for (uint64_t i = 0; i < rank; ++i) {
      const uint64_t extent = number(8);
      if (extent < 1 || extent > max_extent || numbers > max_extent / extent)
        refuse(begin, "tensor '", name, "' has the extent ", extent, ", or too many numbers");
      numbers *= extent;
      out.shape.insert(out.shape.begin(), static_cast<int64_t>(extent));
    }
    const uint64_t code = number(4);
    const auto type = std::ranges::find(gguf_types(), code, &GgufType::code);
    if (type == gguf_types().end())
      refuse(begin, "tensor '", name, "' has the type ", code, "; ", known_types());
    out.type = type->name;
    const int64_t row = out.shape.empty() ? 1 : out.shape.back();
    if (row % type->numbers != 0)
      refuse(begin, "rows of tensor '", name, "' have ", row, " numbers, and ", type->name, " has blocks of ",
             type->numbers);
    out.size = static_cast<int64_t>(numbers) / type->numbers * type->bytes;
    const uint64_t offset = number(8);
    if (offset > file_.size() || static_cast<int64_t>(offset) % alignment != 0)
      refuse(begin, "tensor '", name, "' has the offset ", offset, " in a file of ", file_.size(), " bytes");
    out.offset = static_cast<int64_t>(offset);
    return out;
  }

  static std::string known_types() {
    std::string out;
    for (const GgufType& type : gguf_types()) out += text(out.empty() ? "" : ", ", type.name);
    return out + " can be read";
  }

  /// Makes offsets count from the start of the file, and checks that tensors lie in it side by side.
  void place(std::vector<GgufTensor>& tensors, int64_t alignment) const {
    const int64_t data = (static_cast<int64_t>(at_) + alignment - 1) / alignment * alignment;
    const auto file_size = static_cast<int64_t>(file_.size());
    std::vector<const GgufTensor*> by_place;
    for (GgufTensor& one : tensors) {
      one.offset += data;
      if (one.offset > file_size || one.size > file_size - one.offset)
        refuse(static_cast<size_t>(std::min(one.offset, file_size)), "tensor '", shown(one.name), "' has ",
               one.size, " bytes, and the file ends before: it is cut short");
      by_place.push_back(&one);
    }
    std::ranges::sort(by_place, {}, [](const GgufTensor* one) { return one->offset; });
    for (size_t i = 1; i < by_place.size(); ++i) {
      if (by_place[i - 1]->offset + by_place[i - 1]->size > by_place[i]->offset)
        refuse(static_cast<size_t>(by_place[i]->offset), "tensors '", shown(by_place[i - 1]->name), "' and '",
               shown(by_place[i]->name), "' overlap");
    }
  }

  std::string_view file_, name_;
  size_t at_ = 0;
  int64_t num_values_ = 0;
};

}  // namespace

GgufFile GgufFile::parse(std::string bytes, std::string name) {
  GgufFile out;
  out.bytes_ = std::move(bytes);
  out.name_ = std::move(name);
  GgufReader(out.bytes_, out.name_).read(out.metadata_, out.tensors_);
  return out;
}

GgufFile GgufFile::read(const Path& path) { return parse(io::read(path), path.string()); }

const GgufTensor* GgufFile::find(std::string_view tensor) const {
  const auto found = std::ranges::find(tensors_, tensor, &GgufTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

std::vector<float> GgufFile::values(const GgufTensor& tensor) const {
  const GgufType& type = *std::ranges::find(gguf_types(), tensor.type, &GgufType::name);
  std::vector<float> out(static_cast<size_t>(tensor.size / type.bytes * type.numbers));
  const auto* block = reinterpret_cast<const unsigned char*>(bytes_.data()) + tensor.offset;
  for (size_t i = 0; i < out.size(); i += static_cast<size_t>(type.numbers), block += type.bytes)
    type.decode(block, out.data() + i);
  const auto bad = std::ranges::find_if(out, [](float x) { return !std::isfinite(x); });
  if (bad != out.end())
    fail(Fault::numeric, name_, ": tensor ", shown(tensor.name), " is not finite at number ",
         bad - out.begin(), ". Fetch the file again, or take another one.");
  return out;
}

}  // namespace heed
