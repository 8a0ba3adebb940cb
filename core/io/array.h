// Arrays of numbers as files store them: the name of a type, extents, and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// A dense row-major array, as readers of files return it and writers take it.
struct Array {
  std::string dtype;             ///< "f32", "f64", "bf16", "i32", "i64" or "u8"
  std::vector<int64_t> shape;    ///< extents; empty for a single number
  std::vector<std::byte> bytes;  ///< the elements in the byte order of this machine, row-major

  /// Copies values in row-major order; their number must fit the shape.
  template <class T>
  static Array of(std::vector<int64_t> shape, std::span<const T> values);
  /// The numbers as C++ values; T must be that of `dtype` (uint16_t for bf16).
  template <class T>
  std::vector<T> values() const;
};

/// Bytes of one number of the type, 0 when the name is not one of those above.
inline int64_t array_item_bytes(std::string_view dtype) {
  if (dtype == "f64" || dtype == "i64") return 8;
  if (dtype == "f32" || dtype == "i32") return 4;
  if (dtype == "bf16") return 2;
  return dtype == "u8" ? 1 : 0;
}

/// Product of the extents times `item` bytes, or -1 when an extent is negative or the product passes 2^62.
inline int64_t array_bytes(std::span<const int64_t> shape, int64_t item) {
  constexpr int64_t max_bytes = int64_t{1} << 62;
  int64_t product = item;
  for (const int64_t extent : shape) {
    // A zero extent does not excuse others: [0, 2^62, 2^62] is refused as well.
    if (extent < 0 || (extent > 0 && product > max_bytes / extent)) return -1;
    if (extent > 0) product *= extent;
  }
  for (const int64_t extent : shape) {
    if (extent == 0) return 0;
  }
  return product;
}

/// The name of a C++ type in an Array.
template <class T>
constexpr std::string_view array_dtype() {
  if constexpr (std::is_same_v<T, float>)
    return "f32";
  else if constexpr (std::is_same_v<T, double>)
    return "f64";
  else if constexpr (std::is_same_v<T, int32_t>)
    return "i32";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "i64";
  else if constexpr (std::is_same_v<T, uint16_t>)
    return "bf16";
  else {
    static_assert(std::is_same_v<T, uint8_t>,
                  "an Array holds float, double, int32_t, int64_t, uint8_t or bf16");
    return "u8";
  }
}

template <class T>
Array Array::of(std::vector<int64_t> shape, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  if (array_bytes(shape, sizeof(T)) != static_cast<int64_t>(bytes.size())) {
    fail("array: ", static_cast<int64_t>(values.size()), " values do not fill the extents given");
  }
  return {.dtype = std::string(array_dtype<T>()),
          .shape = std::move(shape),
          .bytes = {bytes.begin(), bytes.end()}};
}

template <class T>
std::vector<T> Array::values() const {
  if (dtype != array_dtype<T>()) fail("array: it holds ", dtype, ", ", array_dtype<T>(), " was asked for");
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace heed
