// The idx format of MNIST: images and labels of one byte each.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// Grey images.
struct ImageFile {
  int64_t count = 0;            ///< images
  int64_t rows = 0;             ///< height of each image
  int64_t columns = 0;          ///< width of each image
  std::vector<uint8_t> pixels;  ///< [count, rows, columns], 0 is the background
};

/// Images and their labels.
struct LabelledImages {
  ImageFile images;             ///< in the order of the labels
  std::vector<uint8_t> labels;  ///< [count]
};

/// Reads an idx3 file of bytes, plain or gzip (http://yann.lecun.com/exdb/mnist, "file formats"). Fault::data
/// when the header is wrong or the size differs from the header's; checked before allocating.
ImageFile read_idx_images(const Path& path);

/// Reads labels from an idx1 file of bytes, with the same checks.
std::vector<uint8_t> read_idx_labels(const Path& path);

/// Reads both. Fault::data when their counts differ or a label is not below `classes`.
LabelledImages read_labelled_images(const Path& images, const Path& labels, int64_t classes = 10);

/// Reads MNIST from a folder with the four files under their usual names, also with .gz; Fault::file that
/// names missing ones.
LabelledImages read_mnist(const Path& folder, bool test);

}  // namespace heed
