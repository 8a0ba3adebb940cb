// Induction heads: a special token appears once; at the end it returns, and what followed it is asked.
#pragma once

#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/scored_sequence.h"

namespace heed {

/// Settings of the induction task. Olsson et al. 2022, arXiv 2209.11895; in the form of Mamba (Gu and Dao
/// 2023, arXiv 2312.00752, section 4.1.2), whose sizes are the defaults.
struct Induction {
  int64_t vocabulary = 16;  ///< tokens; the last one is the special token; at least 3
  int64_t length = 256;     ///< T: tokens of a sequence, at least 4
};

/// A sequence of legal settings: random tokens, among them the special one once and again at the end. Its
/// target there is the token behind its first occurrence; nothing else is scored. The first occurrence is at
/// any of the places 0 to T - 3 alike (the code of H3, HazyResearch/safari, leaves T - 3 out).
ScoredSequence induction(const Induction& options, CounterRng rng);

}  // namespace heed
