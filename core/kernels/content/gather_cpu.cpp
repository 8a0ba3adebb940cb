// Rows of a table on the CPU.
#include "heed/core/kernels/content/gather.h"

#include <algorithm>
#include <cstring>

#include "heed/core/kernels/content/index_errors.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

void check(const char* op, const Tensor& ids, int64_t rows) {
  const int32_t* id = ids.data<int32_t>();
  int32_t least = 0, most = -1;
  for (int64_t i = 0; i < ids.size(); ++i) {
    least = std::min(least, id[i]);
    most = std::max(most, id[i]);
  }
  if (least >= 0 && most < rows) return;
  const int64_t at = std::find_if(id, id + ids.size(), [rows](int32_t i) { return i < 0 || i >= rows; }) - id;
  refuse_id(op, id[at], at, rows);
}

}  // namespace

/// out[i, :] = table[ids[i], :]. One task is some rows i.
template <>
void Gather::cpu<here>(const Tensor& table, const Tensor& ids, const Tensor& out) {
  const int64_t width = table.extent(-1);
  check("gather", ids, table.extent(0));
  const int32_t* id = ids.data<int32_t>();
  visit_float("gather", table.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = table.data<T>();
    T* to = out.data<T>();
    const int64_t stride = table.strides()[0], step = table.strides()[1];
    parallel_rows(ids.size(), light_grain / std::max<int64_t>(width, 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = from + id[i] * stride;
        if (step == 1) {
          std::memcpy(to + i * width, row, static_cast<size_t>(width) * sizeof(T));
        } else {
          for (int64_t j = 0; j < width; ++j) to[i * width + j] = row[j * step];
        }
      }
    });
  });
  Count::add(out.size());
}

/// table[ids[i], :] += rows[i, :], in the order of i. One task is a band of columns, which goes through all
/// rows i.
template <>
void ScatterAdd::cpu<here>(const Tensor& ids, const Tensor& rows, const Tensor& table) {
  const int64_t width = table.extent(-1);
  check("scatter_add", ids, table.extent(0));
  const int32_t* id = ids.data<int32_t>();
  const int64_t count = ids.size();
  visit_float("scatter_add", table.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = rows.data<T>();
    T* to = table.data<T>();
    // Each piece owns some columns of every row, so additions into one place keep the order of i.
    const int64_t columns = count * width < light_grain ? std::max<int64_t>(width, 1) : 64;
    parallel_rows(width, columns, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        T* into = to + id[i] * width;
        const T* row = from + i * width;
#pragma GCC ivdep
        for (int64_t j = begin; j < end; ++j) into[j] += row[j];
      }
    });
  });
  Count::add(rows.size());
}

}  // namespace heed::kernel
