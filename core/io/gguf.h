// GGUF files: metadata and tensors of language models, as llama.cpp reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/io/json.h"

namespace heed {

/// The type, extents and position of a tensor in a GGUF file.
struct GgufTensor {
  std::string name;       ///< unique in the file
  std::string type = {};  ///< "f32", "f16", "bf16", "q8_0", "q4_1", ...: see decode_gguf()
  std::vector<int64_t> shape =
      {};              ///< extents, row-major: [out, in] of a matrix (the file has them reversed)
  int64_t offset = 0;  ///< offset of the first byte from the start of the file
  int64_t size = 0;    ///< bytes
};

/// A GGUF file in memory.
class GgufFile {
 public:
  /// Takes the bytes of a whole file and checks its header: version 2 or 3, no key or tensor twice, types
  /// that can be read, and spans that do not overlap and lie within the file. Fault::data that names `name`
  /// and the byte for everything else. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
  static GgufFile parse(std::string bytes, std::string name);
  static GgufFile read(const Path& path);  ///< parse() of a file; Fault::file where it cannot be read

  const std::string& name() const { return name_; }  ///< names the file in errors
  /// An object with the metadata by key, in the order of the file. Floats are exact; bytes of texts are as in
  /// the file.
  const Json& metadata() const { return metadata_; }
  /// All tensors in the order of the file.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view tensor) const;  ///< the tensor, or nullptr
  /// Its numbers as f32, row-major. Fault::numeric that names file, tensor and index of the first one that is
  /// NaN or infinite.
  std::vector<float> values(const GgufTensor& tensor) const;

 private:
  std::string bytes_, name_;
  Json metadata_ = Json::object();
  std::vector<GgufTensor> tensors_;
};

/// A tensor to be written into a GGUF file.
struct GgufFloats {
  std::string name;                ///< unique in the file
  std::vector<int64_t> shape;      ///< 1 to 4 extents, row-major
  std::span<const float> numbers;  ///< as many as the shape says; the caller owns them
};

/// The bytes of a GGUF file of version 3 with these members of `metadata` and tensors in f32. Integers are
/// written as u32 where they fit, else as i64, other numbers as f32, lists as texts or i32. Fails for members
/// of another kind, and for numbers that do not fit their shape.
std::string encode_gguf(const Json& metadata, std::span<const GgufFloats> tensors);

/// A type of tensors in GGUF files: numbers lie in blocks, which share scales.
struct GgufType {
  std::string_view name;  ///< in lower case: "q4_1"
  uint32_t code = 0;      ///< its number in files
  int64_t numbers = 1;    ///< in a block
  int64_t bytes = 0;      ///< bytes of a block
  /// Writes the numbers of a block.
  void (*decode)(const unsigned char* block, float* out) = nullptr;
};

/// The types that can be read: f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k and q6_k.
std::span<const GgufType> gguf_types();

}  // namespace heed
