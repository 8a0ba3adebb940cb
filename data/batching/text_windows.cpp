// Cuts a text into windows.
#include "heed/data/batching/text_windows.h"

#include <algorithm>

#include "heed/core/error.h"
#include "heed/data/batching/shuffle.h"

namespace heed {

WindowBatch WindowBatch::some_rows(int64_t first, int64_t count) const {
  WindowBatch out = *this;
  for (Rows* side : {&out.input, &out.target}) {
    const auto begin = side->ids.begin() + first * side->columns;
    side->ids = std::vector<int32_t>(begin, begin + count * side->columns);
    side->lengths.resize(static_cast<size_t>(count));  // all are equal
    side->rows = count;
  }
  if (!documents.empty()) out.documents.assign(documents.begin() + first, documents.begin() + first + count);
  return out;
}

TextWindows::TextWindows(std::vector<int32_t> ids, const WindowOptions& options,
                         std::vector<int64_t> document_starts)
    : ids_(std::move(ids)), options_(options), document_starts_(std::move(document_starts)) {
  if (options_.block < 1 || options_.batch < 1) {
    fail("windows: block = ", options_.block, " and batch = ", options_.batch, "; both must be at least 1.");
  }
  if (options_.stride < 0 || options_.stride > options_.block)
    fail("windows: stride = ", options_.stride, ". It must be 0 to ", options_.block, ", the block.");
  if (size() <= options_.block) {
    fail(Fault::data, "windows: a text of ", size(), " ids is too short for a window of ", options_.block,
         " and the id after it. Bring more text, or lower the block.");
  }
  max_documents_ = largest_number_of_documents();
}

std::vector<int32_t> TextWindows::documents_in(int64_t offset, int64_t columns) const {
  std::vector<int32_t> lengths;
  int64_t begin = offset;
  for (auto start = std::upper_bound(document_starts_.begin(), document_starts_.end(), offset);
       start != document_starts_.end() && *start < offset + columns; ++start) {
    lengths.push_back(static_cast<int32_t>(*start - begin));
    begin = *start;
  }
  lengths.push_back(static_cast<int32_t>(offset + columns - begin));
  return lengths;
}

int64_t TextWindows::largest_number_of_documents() const {
  int64_t max_starts = 0;  // within a block that begins one id before the first of them
  for (auto first = document_starts_.begin(), last = first; last != document_starts_.end(); ++last) {
    while (*last - *first > options_.block - 2) ++first;
    max_starts = std::max(max_starts, last - first + 1);
  }
  return max_starts + 1;
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
  out.stride = options_.stride > 0 ? options_.stride : options_.block;
  // With overlap, the first window has no context, so it scores a whole block.
  out.has_whole_window = out.stride < options_.block ? 1 : 0;
  const int64_t num_targets = size() - 1;
  const int64_t targets_left = num_targets - out.has_whole_window * options_.block;
  out.num_windows = targets_left / out.stride;
  out.rest = targets_left % out.stride;
  return out;
}

int64_t TextWindows::batches() const {
  const Cover cover = this->cover();
  const int64_t full_batches = (cover.num_windows + options_.batch - 1) / options_.batch;
  return cover.has_whole_window + full_batches + (cover.rest > 0 ? 1 : 0);
}

WindowBatch TextWindows::in_order(int64_t batch) const {
  if (batch < 0 || batch >= batches()) fail("windows: no batch ", batch, "; there are ", batches(), ".");
  const Cover cover = this->cover();
  if (batch < cover.has_whole_window) return make(std::vector<int64_t>{0}, options_.block);
  const int64_t first_window = (batch - cover.has_whole_window) * options_.batch;
  std::vector<int64_t> offsets;
  for (int64_t i = first_window; i < std::min(first_window + options_.batch, cover.num_windows); ++i)
    offsets.push_back((i + cover.has_whole_window) * cover.stride);
  if (!offsets.empty()) {
    WindowBatch out = make(offsets, options_.block);
    out.first_scored = options_.block - cover.stride;
    return out;
  }
  // The rest is scored by one window that ends with the text.
  const int64_t columns = cover.has_whole_window > 0 ? options_.block : cover.rest;
  WindowBatch out = make(std::vector<int64_t>{size() - 1 - columns}, columns);
  out.first_scored = columns - cover.rest;
  return out;
}

WindowBatch TextWindows::windows(std::span<const int64_t> indices, int64_t columns) const {
  std::vector<int64_t> offsets;
  for (const int64_t index : indices) {
    if (index < 0 || index >= num_windows())
      fail("windows: no window ", index, "; there are ", num_windows(), ".");
    offsets.push_back(index * options_.block);
  }
  return make(offsets, columns > 0 ? std::min(columns, options_.block) : options_.block);
}

WindowBatch TextWindows::make(std::span<const int64_t> offsets, int64_t columns) const {
  WindowBatch out;
  out.max_documents = max_documents_;
  if (!document_starts_.empty()) {
    for (const int64_t offset : offsets) out.documents.push_back(documents_in(offset, columns));
  }
  for (Rows* rows : {&out.input, &out.target}) {
    rows->rows = static_cast<int64_t>(offsets.size());
    rows->columns = columns;
    rows->ids.reserve(offsets.size() * static_cast<size_t>(columns));
    rows->lengths.assign(offsets.size(), static_cast<int32_t>(columns));
    const int64_t shift = rows == &out.target ? 1 : 0;
    for (const int64_t offset : offsets) {
      const auto begin = ids_.begin() + offset + shift;
      rows->ids.insert(rows->ids.end(), begin, begin + columns);
    }
  }
  return out;
}

}  // namespace heed
