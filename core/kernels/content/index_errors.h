// Messages of kernels that are given an invalid index, one wording for all devices.
#pragma once

#include <cstdint>

#include "heed/core/error.h"

namespace heed::kernel {

/// Fails for a target of cross_entropy that is no class.
[[noreturn]] inline void refuse_target(int32_t target, int64_t row, int64_t classes, int32_t ignore) {
  fail("cross_entropy: target ", target, " of row ", row, " is none of the ", classes,
       " classes. Targets are 0 to ", classes - 1, ", or ", ignore, " for rows that do not count.");
}

/// Fails for an id of a flat list that is no row of its table.
[[noreturn]] inline void refuse_id(const char* op, int32_t id, int64_t position, int64_t rows) {
  fail(op, ": id ", id, " at position ", position, " is outside the table of ", rows, " rows. Ids are 0 to ",
       rows - 1, ".");
}

/// Fails for an id of a head that is neither -1 nor one of its rows.
[[noreturn]] inline void refuse_row(const char* op, int32_t id, int64_t position, int64_t head, int64_t batch,
                                    int64_t rows) {
  fail(op, ": id ", id, " at position ", position, " of head ", head, " of batch row ", batch,
       " is outside its ", rows, " rows. Ids are 0 to ", rows - 1, ", or -1 for none.");
}

}  // namespace heed::kernel
