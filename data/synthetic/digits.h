// Synthetic handwritten digits: the default data of the digit classifier.
#pragma once

#include <cstdint>

#include "heed/data/formats/idx.h"
#include "heed/data/progress_callback.h"

namespace heed {

/// `count` grey images of 28 x 28 in MNIST's form: ink up to 255 on background 0, figures about 20 pixels
/// high near the middle; labels 0 to 9 in near-equal numbers, shuffled. Slant, size, thickness, wobble,
/// position and grain vary per image. A pure function of count and seed for any number of threads;
/// on_progress gets the number drawn. A usage error when count is not in 1 .. 10,000,000.
LabelledImages digits(int64_t count, uint64_t seed, const ProgressCallback& on_progress = {});

}  // namespace heed
