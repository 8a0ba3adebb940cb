// Synthetic long documents whose label depends on distant words: the default data of the tasks text and
// retrieval.
#pragma once

#include <cstdint>

#include "heed/data/progress_callback.h"
#include "heed/data/text/labelled_sequences.h"

namespace heed {

/// Bounds of a document's length in bytes, both at least 600.
struct DocumentLengths {
  int64_t min_bytes = 800;   ///< lower bound of the length that is drawn
  int64_t max_bytes = 4000;  ///< upper bound of the length that is drawn
};

/// `count` documents. The first sentence names a person; among lines of verse, that person and seven others
/// each call something good or poor, four of the eight good. The label is the named person's verdict (1:
/// good), so counts of words or byte n-grams do not tell it. Equal arguments give equal documents, for any
/// number of threads; on_progress gets the number of finished documents.
Sequences verdict_documents(int64_t count, uint64_t seed, const DocumentLengths& lengths = {},
                            const ProgressCallback& on_progress = {});

/// `count` pairs of documents. Each document names one of sixteen houses once, anywhere among lines of verse.
/// The label is 1 when both name one house; on_progress gets the number of finished pairs.
Sequences document_pairs(int64_t count, uint64_t seed, const DocumentLengths& lengths = {},
                         const ProgressCallback& on_progress = {});

}  // namespace heed
