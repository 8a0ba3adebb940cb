// Draws the sequences of the induction task.
#include "heed/data/synthetic/induction.h"

namespace heed {

ScoredSequence induction(const Induction& options, CounterRng rng) {
  const int64_t special = options.vocabulary - 1, place = rng.below(options.length - 2);
  ScoredSequence out;
  for (int64_t i = 0; i + 1 < options.length; ++i) out.add(i == place ? special : rng.below(special));
  out.add(special, out.tokens[static_cast<size_t>(place + 1)]);
  return out;
}

}  // namespace heed
