// Synthetic handwritten digits: the default data of the tasks digits and image.
#pragma once

#include <cstdint>

#include "heed/data/formats/idx.h"
#include "heed/data/progress_callback.h"
#include "heed/data/text/labelled_sequences.h"

namespace heed {

/// `count` grey images of 28 x 28 in MNIST's form: ink up to 255 on background 0, figures about 20 pixels
/// high near the middle; labels 0 to 9 in near-equal numbers, shuffled. Slant, size, thickness, wobble,
/// position and grain vary per image. Equal counts and seeds give equal images, for any number of threads;
/// on_progress gets the number of finished images. Fault::usage unless count is in 1 .. 10,000,000.
LabelledImages digits(int64_t count, uint64_t seed, const ProgressCallback& on_progress = {});

/// `count` images of 32 x 32 grey pixels, the default data of the task image: a bright or dark digit on a
/// grey background with gradient and grain.
Sequences digits_on_background(int64_t count, uint64_t seed, const ProgressCallback& on_progress = {});

}  // namespace heed
