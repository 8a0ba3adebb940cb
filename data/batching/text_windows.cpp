// Cuts a text into windows.
#include "heed/data/batching/text_windows.h"

#include <algorithm>

#include "heed/core/error.h"
#include "heed/data/batching/shuffle.h"

namespace heed {

TextWindows::TextWindows(std::vector<int32_t> ids, const WindowOptions& options)
    : ids_(std::move(ids)), options_(options) {
  if (options_.block < 1 || options_.batch < 1) {
    fail("windows: block = ", options_.block, " and batch = ", options_.batch, "; both must be at least 1.");
  }
  if (options_.stride < 0 || options_.stride > options_.block)
    fail("windows: stride = ", options_.stride, ". It must be 0 to ", options_.block, ", the block.");
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
  return make(offsets, options_.block);
}

TextWindows::Cover TextWindows::cover() const {
  Cover out;
  const int64_t targets = size() - 1;
  out.stride = options_.stride > 0 ? options_.stride : options_.block;
  // With overlap, the first window scores a whole block, so it is a batch of its own.
  out.alone = out.stride < options_.block ? 1 : 0;
  const int64_t rest = targets - out.alone * options_.block;
  out.windows = rest / out.stride;
  out.left = rest % out.stride;
  return out;
}

int64_t TextWindows::batches() const {
  const Cover cover = this->cover();
  return cover.alone + (cover.windows + options_.batch - 1) / options_.batch + (cover.left > 0 ? 1 : 0);
}

WindowBatch TextWindows::in_order(int64_t batch) const {
  if (batch < 0 || batch >= batches()) fail("windows: no batch ", batch, "; there are ", batches(), ".");
  const Cover cover = this->cover();
  if (batch < cover.alone) return make(std::vector<int64_t>{0}, options_.block);
  const int64_t from = (batch - cover.alone) * options_.batch;
  std::vector<int64_t> offsets;
  for (int64_t i = from; i < std::min(from + options_.batch, cover.windows); ++i)
    offsets.push_back((i + cover.alone) * cover.stride);
  if (!offsets.empty()) {
    WindowBatch out = make(offsets, options_.block);
    out.first = options_.block - cover.stride;
    return out;
  }
  const int64_t columns = cover.alone > 0 ? options_.block : cover.left;
  WindowBatch out = make(std::vector<int64_t>{size() - 1 - columns}, columns);
  out.first = columns - cover.left;
  return out;
}

WindowBatch TextWindows::windows(std::span<const int64_t> numbers, int64_t columns) const {
  std::vector<int64_t> offsets;
  for (const int64_t number : numbers) {
    if (number < 0 || number >= num_windows())
      fail("windows: no window ", number, "; there are ", num_windows(), ".");
    offsets.push_back(number * options_.block);
  }
  return make(offsets, columns > 0 ? std::min(columns, options_.block) : options_.block);
}

WindowBatch TextWindows::make(std::span<const int64_t> offsets, int64_t block) const {
  WindowBatch out;
  for (Rows* rows : {&out.input, &out.target}) {
    rows->rows = static_cast<int64_t>(offsets.size());
    rows->columns = block;
    rows->ids.reserve(offsets.size() * static_cast<size_t>(block));
    rows->lengths.assign(offsets.size(), static_cast<int32_t>(block));
    const int64_t shift = rows == &out.target ? 1 : 0;
    for (const int64_t offset : offsets) {
      const auto begin = ids_.begin() + offset + shift;
      rows->ids.insert(rows->ids.end(), begin, begin + block);
    }
  }
  return out;
}

}  // namespace heed
