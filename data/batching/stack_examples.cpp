// Stacks tensors of examples into batches [B, ...].
#include "heed/data/batching/stack_examples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "heed/core/dtype.h"

namespace heed {
namespace {

/// Fills `num_bytes` bytes with elements of this type and value. Fails where the type cannot hold the value.
void fill(DType dtype, std::byte* padding, int64_t num_bytes, double value) {
  visit(dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      if (!(value >= static_cast<double>(Limits::min()) && value < std::ldexp(1.0, Limits::digits)))
        fail("DataLoader: pad has the value ", value, " for a tensor of ", dtype, ", which cannot hold it.");
    }
    const T element(static_cast<T>(value));
    for (int64_t offset = 0; offset < num_bytes; offset += static_cast<int64_t>(sizeof element))
      std::memcpy(padding + offset, &element, sizeof element);
  });
}

/// Tensor number `tensor` of each example, to be stacked.
struct Column {
  std::span<const Example> examples;
  std::span<const int64_t> indices;  // indices of the examples in the set, for errors
  size_t tensor;
  const Padding* padding;  // null: extents must be equal

  const Tensor& of(size_t i) const { return examples[i][tensor]; }

  /// Fails unless the tensors can be stacked.
  void check() const {
    const Tensor& first = of(0);
    for (size_t i = 0; i < examples.size(); ++i) {
      const Tensor& x = of(i);
      const std::string name = text("DataLoader: tensor ", tensor, " of example ", indices[i]);
      if (!x) fail(name, " is empty. Give it a shape.");
      if (x.device() != Device::cpu || !x.contiguous()) {
        fail(
            name,
            " is not a row-major tensor of the CPU. Make it there: the loader brings batches to the device.");
      }
      if (padding != nullptr && x.rank() == 0)
        fail(name, " is a single number, which cannot be padded. Take it out of pad.");
      const int64_t num_ragged = padding != nullptr ? 1 : 0;  // first axes that may differ
      const bool fits =
          x.dtype() == first.dtype() && x.rank() == first.rank() &&
          std::equal(x.shape().begin() + num_ragged, x.shape().end(), first.shape().begin() + num_ragged);
      if (fits) continue;
      fail(name, " is ", x.dtype(), " ", x.shape(), ", that of example ", indices[0], " is ", first.dtype(),
           " ", first.shape(),
           padding != nullptr ? ". Beyond the first axis they must be equal."
                              : ". They must be equal; a first axis that differs can be padded: "
                                "DataLoaderOptions::pad.");
    }
  }

  /// The tensors as rows of one, [B, ...], each padded on the right to the longest.
  Tensor stacked() const {
    std::vector<int64_t> extents{static_cast<int64_t>(examples.size())};
    extents.insert(extents.end(), of(0).shape().begin(), of(0).shape().end());
    if (padding != nullptr)
      for (size_t i = 0; i < examples.size(); ++i) extents[1] = std::max(extents[1], of(i).extent(0));
    Tensor out(Shape(extents), of(0).dtype(), Device::cpu);
    const int64_t row_bytes = out.bytes() / extents[0];
    for (size_t i = 0; i < examples.size(); ++i) {
      std::byte* row = static_cast<std::byte*>(out.raw()) + static_cast<int64_t>(i) * row_bytes;
      const int64_t bytes = of(i).bytes();
      if (bytes > 0) std::memcpy(row, of(i).raw(), static_cast<size_t>(bytes));
      if (bytes < row_bytes) fill(out.dtype(), row + bytes, row_bytes - bytes, padding->value);
    }
    return out;
  }

  /// First extents of the tensors, i32 [B].
  Tensor lengths() const {
    Tensor out(Shape{static_cast<int64_t>(examples.size())}, DType::i32, Device::cpu);
    for (size_t i = 0; i < examples.size(); ++i)
      out.data<int32_t>()[i] = static_cast<int32_t>(of(i).extent(0));
    return out;
  }
};

}  // namespace

std::vector<Tensor> stack_examples(std::span<const Example> examples, std::span<const int64_t> indices,
                                   std::span<const Padding> pad) {
  const size_t num_tensors = examples[0].size();
  for (size_t i = 0; i < examples.size(); ++i) {
    if (examples[i].size() == num_tensors) continue;
    fail("DataLoader: example ", indices[i], " has ", examples[i].size(), " tensors, example ", indices[0],
         " has ", num_tensors, ". They must be as many.");
  }
  for (const Padding& padding : pad) {
    if (padding.tensor < 0 || padding.tensor >= static_cast<int64_t>(num_tensors))
      fail("DataLoader: pad names tensor ", padding.tensor, ", and examples have ", num_tensors,
           ", counted from 0.");
  }
  std::vector<Tensor> out, lengths(pad.size());
  for (size_t tensor = 0; tensor < num_tensors; ++tensor) {
    const auto padding = std::find_if(pad.begin(), pad.end(), [&](const Padding& candidate) {
      return candidate.tensor == static_cast<int64_t>(tensor);
    });
    const Column column{examples, indices, tensor, padding == pad.end() ? nullptr : &*padding};
    column.check();
    out.push_back(column.stacked());
    if (padding != pad.end()) lengths[static_cast<size_t>(padding - pad.begin())] = column.lengths();
  }
  out.insert(out.end(), lengths.begin(), lengths.end());
  return out;
}

}  // namespace heed
