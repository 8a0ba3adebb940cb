// Names the tensors of a file that holds numbers one after the other, as the programs llm.c and llama2.c do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/train/run/tensor_conversion.h"

namespace heed {

/// Reads the little-endian header of such a file, and then gives its numbers names and shapes. Errors are
/// Fault::data that names the file and the byte, with what is expected there.
class TensorSequence {
 public:
  /// Both must outlive it, and the sources. `kind` names the format in errors: "an llm.c checkpoint".
  TensorSequence(std::string_view bytes, const std::string& name, std::string kind);

  /// Reads an integer of 32 bits of the header and moves past it; `field` names it in errors.
  int64_t integer(const char* field);
  /// Reads an integer() that must be a size from 1 to 2^24.
  int64_t size(const char* field);
  /// Reads a size() of which each one is a layer: there cannot be more than the file has room for, so that a
  /// small file takes little memory.
  int64_t layers(const char* field);
  /// Moves to this byte, where the numbers begin. Fails where the file ends before.
  void begin_numbers(size_t offset, std::string_view dtype);
  /// Gives the numbers that follow a name and a shape, and moves past them.
  void add(const std::string& name, const std::vector<int64_t>& shape);
  /// Does what add() does, and leaves out `rows` rows behind the tensor.
  void add_padded(const std::string& name, const std::vector<int64_t>& shape, int64_t rows);
  /// Leaves out a tensor.
  void leave_out(const std::string& name, const std::vector<int64_t>& shape) { take(name, shape); }
  /// The tensors. Fails unless the file ends behind them.
  std::vector<TensorSource> finish();

  /// Fails: "NAME is not KIND that can be read: WHY (at byte AT). Fetch it or write it again."
  template <class... Parts>
  [[noreturn]] void refuse(size_t at, const Parts&... parts) const {
    fail(Fault::data, name_, " is not ", kind_, " that can be read: ", parts..., " (at byte ", at,
         "). Fetch it or write it again.");
  }

 private:
  /// The bytes of a tensor; moves past them.
  std::string_view take(const std::string& name, const std::vector<int64_t>& shape);

  std::string_view bytes_;
  const std::string& name_;
  std::string kind_;
  std::string_view dtype_ = "f32";
  size_t at_ = 0;
  std::vector<TensorSource> tensors_;
};

}  // namespace heed
