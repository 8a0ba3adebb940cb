// Synthetic handwritten digits: the default data of the tasks digits and image.
#pragma once

#include <cstdint>

#include "heed/data/formats/idx.h"
#include "heed/data/progress_callback.h"
#include "heed/data/text/labelled_sequences.h"

namespace heed {

/// `count` grey images of 28 x 28 in MNIST's form: ink up to 255 on background 0, figures about 20 pixels
/// high near the middle; labels 0 to 9 in near-equal numbers, shuffled. Slant, size, thickness, wobble,
/// position and grain vary per image. A pure function of count and seed for any number of threads;
/// on_progress gets the number drawn. A usage error when count is not in 1 .. 10,000,000.
LabelledImages digits(int64_t count, uint64_t seed, const ProgressCallback& on_progress = {});

/// `count` images of 32 x 32 grey pixels: a bright or dark digit on a grey background with gradient and
/// grain: the default data of the task image.
Sequences digits_on_background(int64_t count, uint64_t seed, const ProgressCallback& on_progress = {});

}  // namespace heed
