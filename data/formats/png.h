// Reads and writes grey PNG images, the files of Pathfinder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Grey pixels of one image, a byte each.
struct GreyImage {
  int64_t rows = 0;     ///< height
  int64_t columns = 0;  ///< width
  std::string pixels;   ///< [rows, columns]
};

/// Reads a PNG of 8-bit grey pixels, not interlaced (ISO/IEC 15948). Skips chunks that are not needed; check
/// sums of all must fit. Fault::data that names the byte; allocates nothing larger than what the file can
/// hold. `name` stands in the error.
GreyImage read_png(std::string_view bytes, std::string_view name);

/// The image as a PNG. Equal images give equal bytes.
std::string write_png(const GreyImage& image);

}  // namespace heed
