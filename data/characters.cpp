// Windows over a text.
#include "data/characters.h"

#include <algorithm>

#include "core/error.h"
#include "data/shuffle.h"

namespace heed {

TextWindows::TextWindows(std::vector<int32_t> ids, const WindowOptions& options)
    : ids_(std::move(ids)), options_(options) {
  if (options_.block < 1 || options_.batch < 1) {
    fail("windows: block = ", options_.block, " and batch = ", options_.batch, "; both must be at least 1.");
  }
  if (size() <= options_.block) {
    fail(Fault::data, "windows: a text of ", size(), " ids is too short for a window of ", options_.block,
         " and the id after it. Bring more text, or lower the block.");
  }
}

WindowBatch TextWindows::random(int64_t step) const {
  if (step < 0) fail("windows: step ", step, "; steps count from 0.");
  std::vector<int64_t> offsets(static_cast<size_t>(options_.batch));
  for (size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = counter_below(options_.seed, static_cast<uint64_t>(step), i, size() - options_.block);
  }
  return make(offsets);
}

int64_t TextWindows::batches() const {
  const int64_t blocks = (size() - 1) / options_.block;
  return (blocks + options_.batch - 1) / options_.batch;
}

WindowBatch TextWindows::in_order(int64_t batch) const {
  if (batch < 0 || batch >= batches()) fail("windows: no batch ", batch, "; there are ", batches(), ".");
  const int64_t blocks = (size() - 1) / options_.block;
  const int64_t first = batch * options_.batch;
  std::vector<int64_t> offsets;
  for (int64_t i = first; i < std::min(first + options_.batch, blocks); ++i)
    offsets.push_back(i * options_.block);
  return make(offsets);
}

WindowBatch TextWindows::make(std::span<const int64_t> offsets) const {
  WindowBatch out;
  for (Rows* rows : {&out.input, &out.target}) {
    rows->rows = static_cast<int64_t>(offsets.size());
    rows->columns = options_.block;
    rows->ids.reserve(offsets.size() * static_cast<size_t>(options_.block));
    rows->lengths.assign(offsets.size(), static_cast<int32_t>(options_.block));
    const int64_t shift = rows == &out.target ? 1 : 0;
    for (const int64_t offset : offsets) {
      const auto begin = ids_.begin() + offset + shift;
      rows->ids.insert(rows->ids.end(), begin, begin + options_.block);
    }
  }
  return out;
}

TextSplit split_text(std::vector<int32_t> ids, double share) {
  if (!(share > 0.0 && share < 1.0))
    fail("windows: a share of ", share, " for training; it must be between 0 and 1.");
  const auto cut = static_cast<int64_t>(static_cast<double>(ids.size()) * share);
  TextSplit split;
  split.validation.assign(ids.begin() + cut, ids.end());
  ids.resize(static_cast<size_t>(cut));
  split.train = std::move(ids);
  return split;
}

}  // namespace heed
