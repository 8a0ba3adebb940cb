// Windows of one long text of token ids, for language models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/data/batching/padded_batches.h"

namespace heed {

/// Inputs and targets, which are one position later; both [rows, columns], without padding.
struct WindowBatch {
  Rows input;                ///< ids at positions t
  Rows target;               ///< ids at positions t + 1
  int64_t first_scored = 0;  ///< first column that is scored: earlier ones are context
  /// The lengths of the parts of documents in each row of `input`; empty where the text is one document.
  std::vector<std::vector<int32_t>> documents = {};
  int64_t max_documents = 1;  ///< no window of a block has more parts of documents
  /// The rows first <= row < first + count as a batch of their own.
  WindowBatch some_rows(int64_t first, int64_t count) const;
};

/// How to cut windows.
struct WindowOptions {
  int64_t block = 128;  ///< ids per window
  int64_t batch = 32;   ///< windows per batch
  uint64_t seed = 1;    ///< seed of the windows that random() draws
  /// In order, each window but the first scores this many new ids after its context; 0: a whole block, so
  /// that windows do not overlap.
  int64_t stride = 0;
};

/// Windows of a text. The step number alone determines the windows of a training step.
class TextWindows {
 public:
  /// `document_starts`: the places in `ids`, ascending, at which a document begins, without 0; empty where
  /// the text is one document. Fault::data when the text has fewer than block + 1 ids; Fault::usage for a
  /// stride longer than a block.
  TextWindows(std::vector<int32_t> ids, const WindowOptions& options = {},
              std::vector<int64_t> document_starts = {});

  /// A batch of windows with random starts: a pure function of (seed, step).
  WindowBatch random(int64_t step) const;
  /// Number of batches that cover the text once: every id but the first is scored once. A remainder shorter
  /// than a stride is a batch of its own.
  int64_t batches() const;
  /// One of batches(); the last may have fewer rows, or one row with fewer columns.
  WindowBatch in_order(int64_t batch) const;

  /// Number of windows of a block that cover the text without overlap; a rest shorter than a block is left
  /// out.
  int64_t num_windows() const { return (size() - 1) / options_.block; }
  /// Some of these windows, by their indices, cut to `columns` ids where that is above 0.
  WindowBatch windows(std::span<const int64_t> indices, int64_t columns = 0) const;

  /// Number of ids.
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  /// Number of documents.
  int64_t num_documents() const { return static_cast<int64_t>(document_starts_.size()) + 1; }

 private:
  /// The windows of `columns` ids that begin at these offsets in the text.
  WindowBatch make(std::span<const int64_t> offsets, int64_t columns) const;
  /// How in_order() covers the text: a first window, windows of one stride each, a rest.
  struct Cover {
    int64_t stride = 1;            ///< new ids of each window
    int64_t has_whole_window = 0;  ///< 1: the first window scores a whole block, in a batch of its own
    int64_t num_windows = 0;       ///< windows of `stride` new ids
    int64_t rest = 0;              ///< ids left over, less than a stride
  };
  Cover cover() const;

  /// The lengths of the parts of documents in the `columns` ids from `offset` on.
  std::vector<int32_t> documents_in(int64_t offset, int64_t columns) const;
  /// The largest number of documents in any window of a block.
  int64_t largest_number_of_documents() const;

  std::vector<int32_t> ids_;
  WindowOptions options_;
  std::vector<int64_t> document_starts_;
  int64_t max_documents_ = 1;
};

}  // namespace heed
