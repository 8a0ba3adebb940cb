// Rows of every head by index, on the CPU.
#include "heed/core/kernels/content/gather_heads.h"

#include <algorithm>
#include <cstring>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/content/index_errors.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Ids of one head; the stride is that of the last axis.
struct Ids {
  const int32_t* data;
  int64_t stride;
  int64_t operator[](int64_t i) const { return data[i * stride]; }
};

Ids ids_of(const Tensor& ids, int64_t b, int64_t h) {
  return {ids.data<int32_t>() + b * ids.strides()[0] + h * ids.strides()[1], ids.strides()[2]};
}

void check(const char* op, const Tensor& ids, int64_t rows) {
  for (int64_t b = 0; b < ids.extent(0); ++b) {
    for (int64_t h = 0; h < ids.extent(1); ++h) {
      const Ids id = ids_of(ids, b, h);
      for (int64_t i = 0; i < ids.extent(2); ++i) {
        if (id[i] >= -1 && id[i] < rows) continue;
        refuse_row(op, id[i], i, h, b, rows);
      }
    }
  }
}

}  // namespace

/// out[b, h, i, :] = x[b, h, ids[b, h, i], :], zeros for an id of -1. One task is some rows (b, h, i).
template <>
void GatherRows::cpu<here>(const Tensor& x, const Tensor& ids, const Tensor& out) {
  check("take_rows", ids, x.extent(2));
  const int64_t heads = x.extent(1), count = out.extent(2), width = out.extent(3);
  visit_float("take_rows", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = x.data<T>();
    T* to = out.data<T>();
    const Strides strides = x.strides();
    parallel_rows(out.extent(0) * heads * count, light_grain / std::max<int64_t>(width, 1),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                      const int64_t b = row / count / heads, h = row / count % heads,
                                    id = ids_of(ids, b, h)[row % count];
                      T* into = to + row * width;
                      if (id < 0) {
                        std::fill_n(into, width, T(0));
                      } else {
                        std::memcpy(into, from + b * strides[0] + h * strides[1] + id * strides[2],
                                    static_cast<size_t>(width) * sizeof(T));
                      }
                    }
                  });
  });
  Count::add(out.size());
}

/// y[b, h, ids[b, h, i], :] += rows[b, h, i, :], in the order of i; an id of -1 adds nothing. One task is a
/// band of columns of a head, which goes through all rows i.
template <>
void ScatterAddRows::cpu<here>(const Tensor& ids, const Tensor& rows, const Tensor& y) {
  check("put_rows", ids, y.extent(2));
  const int64_t heads = y.extent(1), length = y.extent(2), count = rows.extent(2), width = y.extent(3);
  visit_float("put_rows", y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = rows.data<T>();
    T* to = y.data<T>();
    const Strides strides = rows.strides();
    // Each piece owns some columns of one head, so additions into one place keep the order of i.
    const int64_t columns = count * width < light_grain ? std::max<int64_t>(width, 1) : 32;
    const int64_t cuts = ceil_div(width, columns);
    parallel_for(y.extent(0) * heads * cuts, [&](int64_t piece) {
      const int64_t head = piece / cuts, begin = piece % cuts * columns,
                    end = std::min(begin + columns, width);
      const Ids id = ids_of(ids, head / heads, head % heads);
      const T* first = from + head / heads * strides[0] + head % heads * strides[1];
      for (int64_t i = 0; i < count; ++i) {
        if (id[i] < 0) continue;
        T* into = to + (head * length + id[i]) * width;
        const T* row = first + i * strides[2];
#pragma GCC ivdep
        for (int64_t j = begin; j < end; ++j) into[j] += row[j];
      }
    });
  });
  Count::add(rows.size());
}

}  // namespace heed::kernel
