// Checks the consistency of a logit lens.
#include "heed/attention/inspect/lens_view.h"

#include "heed/core/error.h"

namespace heed {

void check(const LensView& lens) {
  const size_t layers = lens.layers.size(), positions = lens.tokens.size();
  if (layers < 1 || positions < 1)
    fail(Fault::data, "logit lens: it is empty: ", layers, " layers, ", positions, " positions.");
  if (lens.cells.size() != layers || lens.next.size() != positions)
    fail(Fault::data, "logit lens: ", layers, " layers need as many rows, not ", lens.cells.size(), ", and ",
         positions, " positions as many next tokens, not ", lens.next.size(), ".");
  for (const auto& row : lens.cells) {
    if (row.size() != positions)
      fail(Fault::data, "logit lens: a row has ", row.size(), " cells for ", positions, " positions.");
    for (const LensCell& cell : row) {
      if (cell.best.empty()) fail(Fault::data, "logit lens: a cell has no token. Give at least one.");
    }
  }
}

}  // namespace heed
