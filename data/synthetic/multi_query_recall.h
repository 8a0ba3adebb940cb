// Multi-query associative recall (MQAR): keys with values, then each key once more, whose value is asked.
#pragma once

#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/scored_sequence.h"

namespace heed {

/// Settings of MQAR. Arora et al. 2023, arXiv 2312.04927. The defaults are the easiest setting of its figure
/// 2 (HazyResearch/zoology, experiments/paper_configs/iclr24_zoology_figure2/configs.py).
struct MultiQueryRecall {
  int64_t vocabulary = 8192;   ///< tokens: 1 to vocabulary / 2 - 1 are keys, from vocabulary / 2 on values
  int64_t length = 64;         ///< T: tokens of a sequence, even and at least 4 pairs
  int64_t pairs = 4;           ///< K: keys of a sequence, at most vocabulary / 2 - 1
  double alpha = 0.01;         ///< a of the power law of gaps; 1: all gaps are as likely
  bool random_filler = false;  ///< places without pair or question hold random tokens in place of token 0
};

/// A sequence of legal settings, by the distribution of zoology/data/multiquery_ar.py. The first 2 K tokens
/// are key, value, key, value, ...; no key and no value occurs twice. Each key stands once more at one of the
/// (T - 2 K) / 2 even places that are left, and its value is the target there. Places are drawn without
/// replacement, that of the first pair first: the n-th, counted from 1, with a weight of a n^(a - 1).
ScoredSequence multi_query_recall(const MultiQueryRecall& options, CounterRng rng);

}  // namespace heed
