// Why fit() ended, in words.
#pragma once

#include <string>

#include "heed/train/fit.h"

namespace heed {

/// The last words of fit(): "fit: ended after 1,200 steps: no better validation in 5 (patience)", and on a
/// second line where its weights are and how to go on. `steps_taken`: those of this call. `options.folder` is
/// empty where nothing was kept.
std::string describe_end(const FitResult& result, const FitOptions& options, int64_t steps_taken);

}  // namespace heed
