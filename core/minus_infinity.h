// The score of a masked pair, and the maximum of nothing.
#pragma once

#include <limits>

namespace heed {

/// -infinity, on the CPU and on devices.
template <class T>
inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

}  // namespace heed
