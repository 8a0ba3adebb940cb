// One long text of ids, cut into windows for language models.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/batch.h"
#include "data/vocabulary.h"

namespace heed {

/// Inputs and, one position later, what has to be predicted; both [rows, columns] and without padding.
struct WindowBatch {
  Rows input;
  Rows target;
  int64_t first = 0;  ///< the first column that is scored: what comes before it is context
};

/// How windows are cut.
struct WindowOptions {
  int64_t block = 128;  ///< ids a window
  int64_t batch = 32;   ///< windows a batch
  uint64_t seed = 1;
  /// In order, each window but the first scores this many new ids, with those before them as its context;
  /// 0: as many as a block, so that windows do not overlap.
  int64_t stride = 0;
};

/// Windows over a text. The state of a run over them is the step alone.
class TextWindows {
 public:
  /// Fault::data when the text is shorter than one window and the id after it; Fault::usage for a stride that
  /// is longer than a block.
  TextWindows(std::vector<int32_t> ids, const WindowOptions& options = {});

  /// Windows that start anywhere: a pure function of (seed, step).
  WindowBatch random(int64_t step) const;
  /// Number of batches that cover the text once: every id but the first is scored once. What is left for less
  /// than a stride is a batch of its own.
  int64_t batches() const;
  /// One of these batches; the last may have fewer rows, or be one row with fewer columns.
  WindowBatch in_order(int64_t batch) const;

  /// Number of ids.
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }

 private:
  WindowBatch make(std::span<const int64_t> offsets, int64_t block) const;
  /// Windows of one stride each, and ids left over.
  struct Cover {
    int64_t stride = 1, alone = 0, windows = 0, left = 0;
  };
  Cover cover() const;

  std::vector<int32_t> ids_;
  WindowOptions options_;
};

/// A text in two parts, without shuffling.
struct TextSplit {
  std::string_view train, validation;
};

/// The first `share` of the characters, rounded down, for training, and the rest for validation. Bytes that
/// are no UTF-8 count as a character each.
TextSplit split_text(std::string_view text, double share = 0.9,
                     CharacterUnit unit = CharacterUnit::code_point);

}  // namespace heed
