// Handwritten-looking digits drawn by us: the embedded default of the digit classifier.
#pragma once

#include <cstdint>

#include "data/idx.h"
#include "data/told.h"

namespace heed {

/// `count` grey images of 28 x 28 in the form of MNIST: ink up to 255 on a background of 0, the figure about
/// 20 pixels high and near the middle; labels 0 to 9, as many of each as can be, shuffled. Every image has
/// its own slant, size, thickness, wobble, place and grain. The same arguments give the same images, for any
/// number of threads; `told` hears how many are drawn. Usage error when count is not in 1 .. 10,000,000.
LabelledImages digits(int64_t count, uint64_t seed, const Told& told = {});

}  // namespace heed
