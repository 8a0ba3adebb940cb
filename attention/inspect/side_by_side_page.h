// Maps of two or more models for one input on one page: matched heads, differences, one colour scale.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// Models and their maps of one input.
struct SideBySide {
  std::string title{};    ///< title of the page
  std::string caption{};  ///< the input
  /// Name and maps of each model; the heads of the others are matched to those of the first.
  std::vector<std::pair<std::string, std::vector<MapView>>> models{};
};

/// A self-contained page. Each head of the first model stands beside its counterpart in another one
/// (match_heads()) and the difference of both. Weights are f32 as they are; maps of all models together are
/// pooled to 12 MiB. A usage Error for less than two models, and where why_incomparable() says why not.
std::string side_by_side_page(const SideBySide& all);

}  // namespace heed
