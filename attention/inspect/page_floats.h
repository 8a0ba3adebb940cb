// Numbers inside a page, for heed.floats of page_grid.js.
#pragma once

#include <string>
#include <vector>

namespace heed::picture {

/// The numbers as base64 of little-endian f32: bit for bit.
std::string base64_floats(const std::vector<float>& numbers);

}  // namespace heed::picture
