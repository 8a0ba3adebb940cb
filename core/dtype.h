// Types of elements, and dispatch on them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "heed/core/error.h"
#include "heed/core/host_device.h"

namespace heed {

/// Upper half of an IEEE float: 8 bits of exponent, 7 of mantissa. Rounds to nearest even.
struct bf16 {
  uint16_t bits = 0;  ///< sign, exponent and mantissa, from the highest bit down

  bf16() = default;
  /// Rounds to nearest even. Infinities and NaN stay infinities and NaN.
  HEED_BOTH bf16(float value) {  // NOLINT: converts like a built-in number
    const auto bits_of_float = std::bit_cast<uint32_t>(value);
    if ((bits_of_float & 0x7fffffffU) > 0x7f800000U) {
      bits = static_cast<uint16_t>((bits_of_float >> 16) | 0x40U);  // a NaN stays one
    } else {
      bits = static_cast<uint16_t>((bits_of_float + 0x7fffU + ((bits_of_float >> 16) & 1U)) >> 16);
    }
  }
  /// Exact.
  HEED_BOTH operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }  // NOLINT
};

/// The type of a tensor's elements.
enum class DType : uint8_t { f32, f64, bf16, i32, i64, u8 };

/// Bytes of one element.
constexpr int64_t bytes_of(DType dtype) {
  constexpr int64_t bytes[] = {4, 8, 2, 4, 8, 1};  // in the order of DType
  return bytes[static_cast<size_t>(dtype)];
}

const char* to_string(DType dtype);  ///< "f32"
/// True for the types that have fractions.
constexpr bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16;
}

/// A C++ type as a value, for visit().
template <class T>
struct Type {
  using type = T;  ///< float, double, bf16, int32_t, int64_t or uint8_t
};

/// The DType of a C++ type: dtype_of<float> is DType::f32; others do not compile.
template <class T>
inline constexpr DType dtype_of = [] {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, bf16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::u8;
}();

/// Calls f(Type<T>{}) with the C++ type of `dtype`.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(Type<float>{});
    case DType::f64:
      return f(Type<double>{});
    case DType::bf16:
      return f(Type<bf16>{});
    case DType::i32:
      return f(Type<int32_t>{});
    case DType::i64:
      return f(Type<int64_t>{});
    case DType::u8:
      return f(Type<uint8_t>{});
  }
  __builtin_unreachable();
}

/// visit() for the types of arithmetic, f32 and f64. Fails for others; `op` names the caller.
template <class F>
decltype(auto) visit_float(const char* op, DType dtype, F&& f) {
  if (dtype == DType::f32) return f(Type<float>{});
  if (dtype == DType::f64) return f(Type<double>{});
  fail(op, ": computes in f32 and f64, not in ", to_string(dtype), ". Convert with cast(x, DType::f32).");
}

}  // namespace heed
