// Converts the tensors of another program's file one by one: taken by their names there, put by those here.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/io/gguf.h"
#include "heed/train/run/tensor_files.h"

namespace heed {

/// A tensor in memory.
struct FloatTensor {
  std::vector<int64_t> shape;  ///< extents
  std::vector<float> numbers;  ///< numbers in row-major order
};

/// A tensor in a file: its name, its shape, and how its numbers are read.
struct TensorSource {
  std::string name;                             ///< unique in the file
  std::vector<int64_t> shape;                   ///< extents
  std::function<std::vector<float>()> numbers;  ///< reads them as f32; Fault::numeric if one is not finite
};

/// The tensors of one model on their way into a safetensors file of this program. Errors are Fault::data that
/// names the file and the tensor, Fault::numeric for a number that is NaN or infinite.
class TensorConversion {
 public:
  /// The files must outlive it. `model` says in errors what the tensors should be: "a GPT-2 of that
  /// config.json".
  TensorConversion(const TensorFiles& files, std::string model);
  /// Takes the tensors of a GGUF file, which must outlive it.
  TensorConversion(const GgufFile& file, std::string model);

  /// Takes tensors of any other file, which errors call `file`. Fault::data where a name is there twice.
  TensorConversion(std::string file, std::vector<TensorSource> tensors, std::string model);

  const std::string& file() const { return file_; }  ///< names the file in errors
  /// The number of tensors that are neither taken nor left out yet.
  int64_t count() const { return static_cast<int64_t>(remaining_.size()); }
  /// True where the file has such a tensor that is neither taken nor left out yet.
  bool has(const std::string& name) const { return remaining_.contains(name); }
  /// True where the name of such a tensor begins so.
  bool has_prefix(std::string_view prefix) const;
  /// Leaves out all tensors for which `is_left_out(name)`.
  void leave_out(const std::function<bool(std::string_view)>& is_left_out);
  /// The numbers of a tensor as f32. Fails where it is missing or of another shape.
  FloatTensor take(const std::string& name, const std::vector<int64_t>& shape);
  /// Adds a tensor to the file that is made. Its numbers are copied.
  void put(const std::string& name, const FloatTensor& tensor);
  /// The bytes of a safetensors file with all tensors that were put, which this object then has no more.
  /// Fails if a tensor was not taken.
  std::string encode();

 private:
  void add(TensorSource tensor);

  std::string file_, model_;
  std::map<std::string, TensorSource> remaining_;
  SafeTensorsWriter made_;
};

/// The numbers of a tensor of f32, bf16 or f16 as f32. Fault::data that names file and tensor for another
/// type, Fault::numeric with the index of the first number that is NaN or infinite.
std::vector<float> finite_floats(std::span<const std::byte> bytes, std::string_view dtype,
                                 const std::string& file, const std::string& tensor);

/// Transposes a matrix: [rows, columns] -> [columns, rows].
FloatTensor transposed(const FloatTensor& x);

}  // namespace heed
