// Hears of counted work, for tests.
#pragma once

#include <functional>
#include <vector>

#include "heed/core/counted_work.h"

namespace heed {

/// The shares that `work` shows, in order.
inline std::vector<double> shares_of(const std::function<void()>& work) {
  std::vector<double> shares;
  const WorkScope scope([&](const WorkDone& now) { shares.push_back(now.share); });
  work();
  return shares;
}

}  // namespace heed
