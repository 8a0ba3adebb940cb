// Files of PyTorch's torch.save, read as data: a zip archive with a pickle and the bytes of tensors.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/io/pickle.h"
#include "heed/train/run/tensor_conversion.h"

namespace heed {

/// A file of torch.save in memory, with zip entries that are stored, as PyTorch writes them. Errors are
/// Fault::data that names the file and the place.
class TorchFile {
 public:
  /// Checks the archive and reads its pickle, without running it: the names that may occur are those of
  /// tensors, parameters, storages and ordered dicts. `bytes` must outlive it.
  static TorchFile parse(std::string_view bytes, const std::string& name);

  const std::string& name() const { return name_; }  ///< names the file in errors
  const Pickle& pickle() const { return pickle_; }   ///< the value that was saved
  /// A tensor of the pickle, whose numbers lie row by row within a storage of its size. Its numbers are read
  /// when they are asked for; this object must outlive the source. Fails where `value` is no such tensor.
  TensorSource tensor(const PickleValue& value, const std::string& tensor) const;

 private:
  /// The bytes of the storage with this name of the pickle, and the type of its numbers.
  std::pair<std::string_view, std::string_view> storage(const PickleValue& value) const;
  /// Whole numbers of a tuple, none negative.
  std::vector<int64_t> sizes(const PickleValue& tuple) const;

  std::string name_;
  Pickle pickle_;
  std::map<std::string, std::string_view> storages_;  // bytes by the key of the pickle
};

/// A tensor to be saved.
struct TorchTensor {
  std::string name;                ///< its key in the dict
  std::vector<int64_t> shape;      ///< extents
  std::span<const float> numbers;  ///< row-major; the caller owns them
};

/// Writes a dict of tensors by name, as a state_dict has it. Tensors with the same numbers in memory share a
/// storage; storages gets the bytes of each one by its key.
void write_state_dict(PickleWriter& out, std::span<const TorchTensor> tensors,
                      std::vector<std::string_view>& storages);

/// The bytes of a file that torch.load(weights_only=True) reads.
std::string encode_torch_file(const std::string& pickle, std::span<const std::string_view> storages);

}  // namespace heed
