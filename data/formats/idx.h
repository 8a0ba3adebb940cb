// The idx format of MNIST: images and labels of one byte each.
#pragma once

#include <cstdint>
#include <vector>

#include "core/error.h"

namespace heed {

/// Grey images, one after another.
struct ImageFile {
  int64_t count = 0, rows = 0, columns = 0;
  std::vector<uint8_t> pixels;  ///< [count, rows, columns], 0 is the background
};

/// Images with what they show.
struct LabelledImages {
  ImageFile images;
  std::vector<uint8_t> labels;  ///< [count]
};

/// Images from an idx3 file of bytes, plain or gzip (http://yann.lecun.com/exdb/mnist, "file formats").
/// Fault::data when the head is no such file's, or the size is not exactly what the head says; nothing is
/// allocated before that is known.
ImageFile read_idx_images(const Path& path);

/// Labels from an idx1 file of bytes, likewise.
std::vector<uint8_t> read_idx_labels(const Path& path);

/// Both; Fault::data when their numbers differ or a label is not below `classes`.
LabelledImages read_labelled_images(const Path& images, const Path& labels, int64_t classes = 10);

/// MNIST out of a folder that holds the four files under their usual names, with or without .gz; Fault::file
/// naming them where it does not.
LabelledImages read_mnist(const Path& folder, bool test);

}  // namespace heed
