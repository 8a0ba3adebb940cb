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

/// Fills `bytes` bytes with elements of this type. Fails where the type cannot hold the value.
void fill(DType dtype, std::byte* to, int64_t bytes, double value) {
  visit(dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      if (!(value >= static_cast<double>(Limits::min()) && value < std::ldexp(1.0, Limits::digits)))
        fail("DataLoader: pad has the value ", value, " for a tensor of ", dtype, ", which cannot hold it.");
    }
    const T element(static_cast<T>(value));
    for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(sizeof element))
      std::memcpy(to + at, &element, sizeof element);
  });
}

/// One tensor of all examples.
struct Column {
  std::span<const Example> examples;
  std::span<const int64_t> indices;
  size_t tensor;
  const Padding* padding;  // null: none

  const Tensor& of(size_t i) const { return examples[i][tensor]; }

  /// Fails unless they can be stacked.
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
      const int64_t skipped = padding != nullptr ? 1 : 0;  // axes that may differ
      const bool same =
          x.dtype() == first.dtype() && x.rank() == first.rank() &&
          std::equal(x.shape().begin() + skipped, x.shape().end(), first.shape().begin() + skipped);
      if (same) continue;
      fail(name, " is ", x.dtype(), " ", x.shape(), ", that of example ", indices[0], " is ", first.dtype(),
           " ", first.shape(),
           padding != nullptr ? ". Beyond the first axis they must be equal."
                              : ". They must be equal; a first axis that differs can be padded: "
                                "DataLoaderOptions::pad.");
    }
  }

  /// [B, ...]
  Tensor stacked() const {
    std::vector<int64_t> extents{static_cast<int64_t>(examples.size())};
    extents.insert(extents.end(), of(0).shape().begin(), of(0).shape().end());
    if (padding != nullptr)
      for (size_t i = 0; i < examples.size(); ++i) extents[1] = std::max(extents[1], of(i).extent(0));
    Tensor out(Shape(extents), of(0).dtype(), Device::cpu);
    const int64_t row = out.bytes() / extents[0];
    for (size_t i = 0; i < examples.size(); ++i) {
      std::byte* to = static_cast<std::byte*>(out.raw()) + static_cast<int64_t>(i) * row;
      const int64_t bytes = of(i).bytes();
      if (bytes > 0) std::memcpy(to, of(i).raw(), static_cast<size_t>(bytes));
      if (bytes < row) fill(out.dtype(), to + bytes, row - bytes, padding->value);
    }
    return out;
  }

  /// i32 [B]
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
  const size_t tensors = examples[0].size();
  for (size_t i = 0; i < examples.size(); ++i) {
    if (examples[i].size() == tensors) continue;
    fail("DataLoader: example ", indices[i], " has ", examples[i].size(), " tensors, example ", indices[0],
         " has ", tensors, ". They must be as many.");
  }
  for (const Padding& one : pad) {
    if (one.tensor < 0 || one.tensor >= static_cast<int64_t>(tensors))
      fail("DataLoader: pad names tensor ", one.tensor, ", and examples have ", tensors, ", counted from 0.");
  }
  std::vector<Tensor> out, lengths(pad.size());
  for (size_t tensor = 0; tensor < tensors; ++tensor) {
    const auto padding = std::find_if(pad.begin(), pad.end(), [&](const Padding& one) {
      return one.tensor == static_cast<int64_t>(tensor);
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
