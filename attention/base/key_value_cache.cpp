// Appends keys and values, and drops those that no query can reach any more.
#include "heed/attention/base/key_value_cache.h"

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

void KeyValueCache::fields(Fields& f) {
  f("keys", keys);
  f("values", values);
  f("first_keys", first_keys);
  f("first_values", first_values);
}

/// Keeps the rows from position `from` on and appends `rows`.
void KeyValueCache::append(Tensor& all, const Tensor& rows, int64_t from, bool keep_history) const {
  const int64_t present = all ? length - from : 0, total = present + rows.extent(2);
  const int64_t begin = from - forgotten;
  if (keep_history) {
    const std::vector<Tensor> parts = present > 0
                                          ? std::vector<Tensor>{slice(all, 2, begin, begin + present), rows}
                                          : std::vector<Tensor>{rows};
    all = concat(parts, 2);
    return;
  }
  if (!all || all.extent(2) < total || begin > 0) {
    // Cross-attention appends once; a cache that grows step by step doubles its capacity.
    Shape shape = rows.shape();
    shape[2] = all ? std::max<int64_t>(2 * present, total) : (rows.extent(2) == 1 ? 16 : total);
    const Tensor other = Tensor::zeros(shape, rows.dtype(), rows.device());
    if (present > 0)
      launch<kernel::Copy>(rows.device(), view::slice(all, 2, begin, begin + present),
                           view::slice(other, 2, 0, present));
    all = other;
  }
  // Rows below `length` never change, so tensors recorded for the backward pass stay valid.
  launch<kernel::Copy>(rows.device(), rows.detach(), view::slice(all, 2, present, total));
}

void KeyValueCache::append_to_cache(Heads& heads) {
  int64_t needed = forgotten;  // the first key that a query can still reach
  if (heads.k) {
    const int64_t added = heads.k.extent(2);
    const bool keep_history = recording() && (heads.k.node() || heads.v.node() || (keys && keys.node()));
    if (reach >= 0) needed = std::max(forgotten, length - reach);
    const int64_t anchored = std::min(anchors - length, added);
    if (anchored > 0) {
      const auto more = [&](const Tensor& before, const Tensor& rows) {
        const Tensor part = slice(rows, 2, 0, anchored);
        return concat(before ? std::vector<Tensor>{before, part} : std::vector<Tensor>{part}, 2);
      };
      first_keys = more(first_keys, heads.k);
      first_values = more(first_values, heads.v);
    }
    // Without recorded gradients, rows move only when the buffer is full.
    const bool full = !keys || keys.extent(2) < length - forgotten + added;
    const int64_t from = keep_history || full ? needed : forgotten;
    append(keys, heads.k, from, keep_history);
    append(values, heads.v, from, keep_history);
    forgotten = from;
    length += added;
  }
  if (length == 0)
    fail("attention: no keys were given and none are remembered. Give keys in the first call.");
  front = std::min(anchors, needed);
  const auto recalled = [&](const Tensor& first, const Tensor& all) {
    const Tensor recent = slice(all, 2, needed - forgotten, length - forgotten);
    return front > 0 ? concat(std::vector<Tensor>{slice(first, 2, 0, front), recent}, 2) : recent;
  };
  heads.k = recalled(first_keys, keys);
  heads.v = recalled(first_values, values);
}

}  // namespace heed
