// Keeps the rows of the batch that each thread computes: here and not in the header, since kernels are
// compiled once for each instruction set and each would have its own copy of the variable.
#include "heed/core/distributed/batch_shard.h"

namespace heed {
namespace {

thread_local BatchRows current_rows;

}  // namespace

SharedRows::SharedRows(BatchRows rows) : rows_(current_rows, rows) {}

uint64_t skipped_draws(int64_t count) {
  if (current_rows.count == 0 || count % current_rows.count != 0) return 0;
  return static_cast<uint64_t>(count / current_rows.count * current_rows.first);
}

}  // namespace heed
