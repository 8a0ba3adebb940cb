// Tables of rope's cosines and sines, made once and kept.
#include "heed/attention/base/rotary_angles.h"

#include <bit>
#include <cmath>

#include "heed/core/constant_table.h"

namespace heed {

Tensor RotaryAngles::at(const Tensor& x, int64_t first, int64_t end, int64_t d, double base) const {
  const auto is_long_enough = [&](const Tensor& table) { return table.extent(0) >= end; };
  const auto make = [&] {
    // The length is a power of two, so that decoding step by step makes few tables.
    const auto length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(end)));
    const int64_t pairs = d / 2;
    std::vector<double> values(static_cast<size_t>(length * d));
    for (int64_t p = 0; p < pairs; ++p) {
      const double rate = std::pow(base, -2 * static_cast<double>(p) / static_cast<double>(d));
      for (int64_t t = 0; t < length; ++t) {
        values[static_cast<size_t>(t * d + p)] = std::cos(static_cast<double>(t) * rate);
        values[static_cast<size_t>(t * d + pairs + p)] = std::sin(static_cast<double>(t) * rate);
      }
    }
    return cast(Tensor::of<double>(values, Shape{length, d}, x.device()), x.dtype());
  };
  const auto table = tables_.get({x.dtype(), x.device()}, is_long_enough, make);
  keep_for_replays(*table);  // a longer table may replace it
  return view::slice(*table, 0, first, end);
}

Tensor RotaryAngles::rotated(const Tensor& x, int64_t first, const Packing* packing, double base,
                             kernel::RotaryPairs pairs) const {
  const int64_t T = x.extent(2), d = x.extent(3);
  if (packing == nullptr) return rotary(x, at(x, first, first + T, d, base), pairs);
  const Tensor angles = at(x, 0, packing->sequences.longest, d, base);
  return rotary(x, embedding(angles, reshape(packing->positions, Shape{T})), pairs);
}

}  // namespace heed
