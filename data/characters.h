// One long text of ids, cut into windows for language models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/batch.h"

namespace heed {

/// Inputs and, one position later, what has to be predicted; both [rows, columns] and without padding.
struct WindowBatch {
  Rows input;
  Rows target;
};

/// How windows are cut.
struct WindowOptions {
  int64_t block = 128;  ///< ids a window
  int64_t batch = 32;   ///< windows a batch
  uint64_t seed = 1;
};

/// Windows over a text. The state of a run over them is the step alone.
class TextWindows {
 public:
  /// Fault::data when the text is shorter than one window and the id after it.
  TextWindows(std::vector<int32_t> ids, const WindowOptions& options = {});

  /// Windows that start anywhere: a pure function of (seed, step).
  WindowBatch random(int64_t step) const;
  /// Number of batches that cover the text once, in blocks that do not overlap; a tail shorter than a block
  /// is left out.
  int64_t batches() const;
  /// One of these batches; the last may have fewer rows.
  WindowBatch in_order(int64_t batch) const;

  /// Number of ids.
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }

 private:
  WindowBatch make(std::span<const int64_t> offsets) const;

  std::vector<int32_t> ids_;
  WindowOptions options_;
};

/// A text in two parts, without shuffling.
struct TextSplit {
  std::vector<int32_t> train, validation;
};

/// The first `share` of the ids, rounded down, for training, and the rest for validation.
TextSplit split_text(std::vector<int32_t> ids, double share = 0.9);

}  // namespace heed
