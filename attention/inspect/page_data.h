// The numbers of a page of maps, as JSON with base64 inside: what page_data.js reads.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/inspect/map_page.h"

namespace heed::picture {

/// Lists of tokens that several maps share, each written once.
class TokenLists {
 public:
  size_t index(const std::vector<std::string>& tokens);  ///< index of this list, which is added if it is new
  std::string as_json() const;                           ///< a list of lists of visible() tokens

 private:
  std::vector<std::vector<std::string>> lists_;
};

/// Numbers [heads, rows, columns] as a JSON object: f32 where they are few, otherwise 16-bit steps between
/// the smallest (at most 0) and the largest; code 65535 is a number that is not finite.
std::string block_json(const std::vector<float>& numbers, int64_t heads, int64_t rows, int64_t columns);

/// Numbers [heads, rows, columns] as a JSON object that has only the `count` numbers of each row with the
/// largest magnitudes, with their columns, and the largest magnitude that is left out of each row.
std::string largest_json(const std::vector<float>& numbers, int64_t heads, int64_t rows, int64_t columns,
                         int64_t count);

/// Everything that the viewer needs: tokens, pictures, and each map with its weights, attribution, rollout,
/// factors and statistics. Throws as maps_page() does.
std::string maps_json(const std::vector<MapView>& maps, const HtmlOptions& options);

}  // namespace heed::picture
