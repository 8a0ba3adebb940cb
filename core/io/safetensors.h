// Safetensors files: named tensors behind a JSON header. Read strictly, written deterministically.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/io/array.h"

namespace heed {

namespace io {
class Descriptor;
}

/// Maximum tensors of a file: it bounds the memory that a hostile header takes.
inline constexpr int64_t max_tensors = 32'768;

/// A tensor to be written; the caller owns its bytes.
struct TensorBytes {
  std::string name;            ///< 1 to 256 printable bytes
  std::string dtype;           ///< "F32", "F64", "BF16", "F16", "I32", "I64" or "U8"; or "f32" and so on
  std::vector<int64_t> shape;  ///< at most 8 extents
  std::span<const std::byte> bytes;  ///< the elements, row-major and little-endian
};

/// The type, extents and position of a tensor in a file.
struct TensorEntry {
  std::string name;            ///< unique in the file
  std::string dtype;           ///< "f16", or as in an Array: "f32", "f64", "bf16", "i32", "i64", "u8"
  std::vector<int64_t> shape;  ///< extents; empty for a single number
  int64_t offset = 0;          ///< offset of the array's first byte from the start of the file
  int64_t size = 0;            ///< bytes
};

/// A safetensors file, in memory or open on the disk.
class SafeTensors {
 public:
  /// Takes the bytes of a whole file and checks its header: its length, its JSON, no name twice, spans that
  /// follow each other without holes or overlaps, cover the file and fit dtype and shape. Fault::data naming
  /// `name` and the place for everything else. Format: https://huggingface.co/docs/safetensors
  static SafeTensors parse(std::string bytes, std::string name);
  static SafeTensors read(const Path& path);  ///< parse() of a file; Fault::file where it cannot be read
  /// Opens a file and checks its header as parse() does. Numbers stay on the disk until they are asked for;
  /// Fault::data where the file has become shorter by then.
  static SafeTensors open(const Path& path);

  const std::string& name() const { return name_; }  ///< names the file in errors
  /// All tensors in the order of the file.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  /// The texts of __metadata__, by name.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const TensorEntry* find(std::string_view tensor) const;  ///< the entry, or nullptr
  /// The entry; Fault::data naming file and tensor when there is none.
  const TensorEntry& at(std::string_view tensor) const;
  /// The bytes of a tensor of a file in memory, valid as long as this object.
  std::span<const std::byte> bytes(const TensorEntry& entry) const;
  /// Copies out.size() bytes of a tensor, from its byte `first` on.
  void copy(const TensorEntry& entry, int64_t first, std::span<std::byte> out) const;
  /// Gives back the bytes of a file in memory, which parse() took.
  std::string release() && { return std::move(file_); }
  /// A copy of the numbers.
  Array array(std::string_view tensor) const;
  /// The numbers of a tensor of f32, bf16 or f16 as f32. Fault::data that names file and tensor for others.
  std::vector<float> floats(const TensorEntry& entry) const;
  /// Fault::numeric naming file, tensor and index of the first number that is NaN or infinite. Tensors of
  /// integers have none.
  void check_finite(const TensorEntry& entry) const;
  /// The first tensor whose bytes do not have the check sum kept with it, or nullptr: see encode_safetensors.
  const TensorEntry* damaged() const;

 private:
  /// Calls f(first byte, bytes) for one piece of a tensor after the other.
  template <class F>
  void for_each_piece(const TensorEntry& entry, const F& f) const;

  std::string file_;                                 // the whole file; empty where it is open on the disk
  std::shared_ptr<const io::Descriptor> open_ = {};  // null where the file is in memory
  std::string name_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Makes the bytes of a safetensors file, one tensor after the other. The CRC-32C of each tensor is kept in
/// the metadata as "crc32c.NAME", so that SafeTensors::damaged() finds the tensor.
class SafeTensorsWriter {
 public:
  /// Reserves memory for a file of so many bytes.
  explicit SafeTensorsWriter(int64_t bytes) { file_.reserve(static_cast<size_t>(bytes)); }
  /// Appends a copy of a tensor. Types must not become wider, so that numbers stay aligned. A usage error for
  /// what no file can hold: a name that is not legal or there twice, another type, bytes that do not fit.
  void add(const TensorBytes& tensor);
  /// The bytes of the file, with this metadata besides the check sums.
  std::string finish(std::map<std::string, std::string> metadata = {}) &&;

 private:
  std::string file_;                               // the numbers; finish() puts the header before them
  std::vector<TensorEntry> entries_;               // offsets are those in file_
  std::map<std::string, std::string> check_sums_;  // by the name of the tensor
};

/// The bytes of a file with these tensors, widest type first and then by name, and this metadata. The CRC-32C
/// of each tensor is kept in the metadata as "crc32c.NAME", so that damaged() finds the tensor.
std::string encode_safetensors(std::span<const TensorBytes> tensors,
                               const std::map<std::string, std::string>& metadata = {});

/// Writes encode_safetensors() atomically.
void write_safetensors(const Path& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace heed
