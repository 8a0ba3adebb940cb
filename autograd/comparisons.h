// Ops whose results are choices, not measures, and so have no gradient: comparisons, arguments of extrema.
#pragma once

#include "heed/core/tensor.h"

namespace heed {

// Masks u8 for where(): 1 where the comparison holds, else 0. Both sides have one dtype, any but bf16, and
// broadcast. Any comparison with NaN is false, so not_equal() is true there.
Tensor equal(const Tensor& a, const Tensor& b);          ///< a == b
Tensor not_equal(const Tensor& a, const Tensor& b);      ///< not a == b
Tensor less(const Tensor& a, const Tensor& b);           ///< a < b
Tensor less_equal(const Tensor& a, const Tensor& b);     ///< a <= b
Tensor greater(const Tensor& a, const Tensor& b);        ///< a > b
Tensor greater_equal(const Tensor& a, const Tensor& b);  ///< a >= b
Tensor equal(const Tensor& x, double value);             ///< x == value, which is converted to x's dtype
Tensor not_equal(const Tensor& x, double value);         ///< not x == value
Tensor less(const Tensor& x, double value);              ///< x < value
Tensor less_equal(const Tensor& x, double value);        ///< x <= value
Tensor greater(const Tensor& x, double value);           ///< x > value
Tensor greater_equal(const Tensor& x, double value);     ///< x >= value

/// The index (i32) of the first largest number along an axis, which goes: logits [B, V] give classes [B].
Tensor argmax(const Tensor& x, int64_t axis);

/// The largest numbers of each row, the largest first.
struct TopK {
  Tensor values;   ///< [..., k], with the gradient of x
  Tensor indices;  ///< i32 [..., k]: where they stand in the row; of equals, the first comes first
};
/// The k largest numbers of each row of the last axis. NaN comes after all numbers. Fails unless k is 1 to
/// the extent of that axis.
TopK top_k(const Tensor& x, int64_t k);

/// ids (i32 [...]) -> [..., classes]: 1 at the id, 0 elsewhere; an id outside 0 .. classes - 1 gives zeros.
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = DType::f32);

}  // namespace heed
