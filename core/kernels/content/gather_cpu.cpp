// Gather and scatter-add of rows on the CPU.
#include "heed/core/kernels/content/gather.h"

#include <algorithm>
#include <cstring>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/content/index_errors.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Fails on the first id that is no row of a table with this many rows.
void check_ids(const char* op, const Tensor& ids, int64_t num_rows) {
  const int32_t *begin = ids.data<int32_t>(), *end = begin + ids.size();
  // Minimum and maximum are found with SIMD vectors; std::find_if, which may end early, is not vectorized.
  int32_t min_id = 0, max_id = -1;
  for (const int32_t* id = begin; id != end; ++id) {
    min_id = std::min(min_id, *id);
    max_id = std::max(max_id, *id);
  }
  if (min_id >= 0 && max_id < num_rows) return;
  const int32_t* invalid =
      std::find_if(begin, end, [num_rows](int32_t id) { return id < 0 || id >= num_rows; });
  refuse_id(op, *invalid, invalid - begin, num_rows);
}

/// Fails on the first id that is neither -1 nor a row of a head with this many rows.
void check_head_ids(const char* op, const HeadIds& ids, int64_t num_heads, int64_t num_rows) {
  for (int64_t head = 0; head < num_heads; ++head) {
    for (int64_t i = 0; i < ids.count; ++i) {
      const int32_t id = ids.at(head, i);
      if (id < -1 || id >= num_rows) refuse_row(op, id, i, head % ids.heads, head / ids.heads, num_rows);
    }
  }
}

/// target[head, ids[head, i], :] += rows(head, i)[:], in the order of i; an id of -1 adds nothing. target
/// [heads, num_rows, width] is contiguous. One task adds a band of columns of all rows i of a head, so that
/// additions into one row keep their order.
template <class T, class RowOf>
void scatter_add(const HeadIds& ids, int64_t num_heads, int64_t num_rows, int64_t width, int64_t band_width,
                 RowOf row_of, T* target) {
  if (ids.count * width < light_grain) band_width = std::max<int64_t>(width, 1);
  const int64_t bands = ceil_div(width, band_width);
  parallel_for(num_heads * bands, [&](int64_t task) {
    const int64_t head = task / bands, begin = task % bands * band_width,
                  end = std::min(begin + band_width, width);
    for (int64_t i = 0; i < ids.count; ++i) {
      const int32_t id = ids.at(head, i);
      if (id < 0) continue;
      T* target_row = target + (head * num_rows + id) * width;
      const T* row = row_of(head, i);
#pragma GCC ivdep
      for (int64_t j = begin; j < end; ++j) target_row[j] += row[j];
    }
  });
}

}  // namespace

/// out[i, :] = table[ids[i], :]. One task is some rows i.
template <>
void Gather::cpu<target_isa>(const Tensor& table, const Tensor& ids, const Tensor& out) {
  const int64_t width = table.extent(-1);
  check_ids("embedding", ids, table.extent(0));
  const int32_t* id_list = ids.data<int32_t>();
  visit_float("embedding", table.dtype(), [&]<class T>(Type<T>) {
    const int64_t row_stride = table.strides()[0], column_stride = table.strides()[1];
    parallel_rows(ids.size(), light_grain / std::max<int64_t>(width, 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* table_row = table.data<T>() + id_list[i] * row_stride;
        T* out_row = out.data<T>() + i * width;
        if (column_stride == 1) {
          std::memcpy(out_row, table_row, static_cast<size_t>(width) * sizeof(T));
        } else {
          for (int64_t j = 0; j < width; ++j) out_row[j] = table_row[j * column_stride];
        }
      }
    });
  });
  Count::add(out.size());
}

/// table[ids[i], :] += rows[i, :], in the order of i. One task is a band of columns.
template <>
void ScatterAdd::cpu<target_isa>(const Tensor& ids, const Tensor& rows, const Tensor& table) {
  constexpr int64_t num_heads = 1, band_width = 64;
  const int64_t width = table.extent(-1);
  check_ids("scatter_add", ids, table.extent(0));
  visit_float("scatter_add", table.dtype(), [&]<class T>(Type<T>) {
    scatter_add(
        HeadIds::of_list(ids), num_heads, table.extent(0), width, band_width,
        [&](int64_t, int64_t i) { return rows.data<T>() + i * width; }, table.data<T>());
  });
  Count::add(rows.size());
}

/// out[b, h, i, :] = x[b, h, ids[b, h, i], :], zeros for an id of -1. One task is some rows (b, h, i).
template <>
void GatherRows::cpu<target_isa>(const Tensor& x, const Tensor& ids, const Tensor& out) {
  const HeadIds head_ids = HeadIds::of_heads(ids);
  const int64_t heads = x.extent(1), count = out.extent(2), width = out.extent(3);
  check_head_ids("gather_rows", head_ids, ids.extent(0) * ids.extent(1), x.extent(2));
  visit_float("gather_rows", x.dtype(), [&]<class T>(Type<T>) {
    const HeadView<const T> inputs(x);
    parallel_rows(out.extent(0) * heads * count, light_grain / std::max<int64_t>(width, 1),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                      const int64_t head = row / count, id = head_ids.at(head, row % count);
                      T* out_row = out.data<T>() + row * width;
                      if (id < 0) {
                        std::fill_n(out_row, width, T(0));
                      } else {
                        std::memcpy(out_row, inputs.at(head / heads, head % heads, id),
                                    static_cast<size_t>(width) * sizeof(T));
                      }
                    }
                  });
  });
  Count::add(out.size());
}

/// y[b, h, ids[b, h, i], :] += rows[b, h, i, :], in the order of i; an id of -1 adds nothing. One task is a
/// band of columns of a head.
template <>
void ScatterAddRows::cpu<target_isa>(const Tensor& ids, const Tensor& rows, const Tensor& y) {
  constexpr int64_t band_width = 32;
  const HeadIds head_ids = HeadIds::of_heads(ids);
  const int64_t heads = y.extent(1), num_heads = y.extent(0) * heads;
  check_head_ids("scatter_add_rows", head_ids, ids.extent(0) * ids.extent(1), y.extent(2));
  visit_float("scatter_add_rows", y.dtype(), [&]<class T>(Type<T>) {
    const HeadView<const T> inputs(rows);
    scatter_add(
        head_ids, num_heads, y.extent(2), y.extent(3), band_width,
        [&](int64_t head, int64_t i) { return inputs.at(head / heads, head % heads, i); }, y.data<T>());
  });
  Count::add(rows.size());
}

}  // namespace heed::kernel
