// Counts and transposes sparse patterns.
#include "heed/core/sparse_pattern.h"

namespace heed::kernel {

Pattern Pattern::transposed() const {
  Pattern out{.heads = heads, .queries = keys, .keys = queries, .first = {0}, .runs = {}};
  std::vector<std::vector<Run>> runs_by_key(static_cast<size_t>(keys));
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < queries; ++i) {
      const auto row = static_cast<size_t>(head * queries + i);
      for (int64_t r = first[row]; r < first[row + 1]; ++r) {
        const Run& run = runs[static_cast<size_t>(r)];
        for (int32_t j = run.begin; j < run.end; ++j) {
          std::vector<Run>& runs_of_key = runs_by_key[static_cast<size_t>(j)];
          if (runs_of_key.empty() || runs_of_key.back().end != i)
            runs_of_key.push_back({static_cast<int32_t>(i), 0});
          runs_of_key.back().end = static_cast<int32_t>(i + 1);
        }
      }
    }
    for (std::vector<Run>& runs_of_key : runs_by_key) {
      out.runs.insert(out.runs.end(), runs_of_key.begin(), runs_of_key.end());
      out.first.push_back(static_cast<int64_t>(out.runs.size()));
      runs_of_key.clear();
    }
  }
  return out;
}

int64_t Pattern::kept() const {
  int64_t total = 0;
  for (const Run& run : runs) total += run.length();
  return total;
}

}  // namespace heed::kernel
