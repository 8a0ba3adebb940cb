// Appends keys and values to the cache, and drops those that no query attends to any more.
#include "heed/attention/base/key_value_cache.h"

#include "heed/attention/base/call_checks.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

void KeyValueCache::fields(Fields& f) {
  f("keys", keys);
  f("values", values);
  f("first_keys", first_keys);
  f("first_values", first_values);
}

void KeyValueCache::append_rows(Tensor& all, const Tensor& rows, int64_t first, bool keep_history) const {
  const int64_t present = all ? length - first : 0, total = present + rows.extent(2);
  const int64_t begin = first - num_evicted;
  if (keep_history) {
    all = present > 0 ? concat(std::vector<Tensor>{slice(all, 2, begin, begin + present), rows}, 2)
                      : concat(std::vector<Tensor>{rows}, 2);
    return;
  }
  if (!all || all.extent(2) < total || begin > 0) {
    // Cross-attention appends once; a cache that grows step by step doubles its capacity.
    Shape shape = rows.shape();
    shape[2] = all ? std::max<int64_t>(2 * present, total) : (rows.extent(2) == 1 ? 16 : total);
    const Tensor grown = Tensor::zeros(shape, rows.dtype(), rows.device());
    if (present > 0)
      launch<kernel::Copy>(rows.device(), view::slice(all, 2, begin, begin + present),
                           view::slice(grown, 2, 0, present));
    all = grown;
  }
  // Rows below `length` never change, so tensors recorded for the backward pass stay valid.
  launch<kernel::Copy>(rows.device(), rows.detach(), view::slice(all, 2, present, total));
}

void KeyValueCache::append_to_cache(Heads& heads) {
  int64_t first_needed = num_evicted;  // the first key in the window of any query of this call
  if (heads.k) {
    const int64_t added = heads.k.extent(2);
    const bool keep_history = recording() && (heads.k.node() || heads.v.node() || (keys && keys.node()));
    if (window >= 0) first_needed = std::max(num_evicted, length - window);
    if (const int64_t missing = std::min(num_first_keys - length, added); missing > 0) {
      const auto append_first = [&](Tensor& first, const Tensor& rows) {
        const Tensor part = slice(rows, 2, 0, missing);
        first = concat(first ? std::vector<Tensor>{first, part} : std::vector<Tensor>{part}, 2);
      };
      append_first(first_keys, heads.k);
      append_first(first_values, heads.v);
    }
    // Without recorded gradients, rows move only when the buffer is full.
    const bool full = !keys || keys.extent(2) < length - num_evicted + added;
    const int64_t first_kept = keep_history || full ? first_needed : num_evicted;
    append_rows(keys, heads.k, first_kept, keep_history);
    append_rows(values, heads.v, first_kept, keep_history);
    num_evicted = first_kept;
    length += added;
  }
  if (length == 0) fail_without_keys();
  num_prepended = std::min(num_first_keys, first_needed);
  const auto cached = [&](const Tensor& first, const Tensor& all) {
    const Tensor recent = slice(all, 2, first_needed - num_evicted, length - num_evicted);
    if (num_prepended == 0) return recent;
    return concat(std::vector<Tensor>{slice(first, 2, 0, num_prepended), recent}, 2);
  };
  heads.k = cached(first_keys, keys);
  heads.v = cached(first_values, values);
}

}  // namespace heed
