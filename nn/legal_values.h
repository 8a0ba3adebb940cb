// Checks of numbers that constructors of modules take.
#pragma once

#include <cstdint>

#include "heed/core/error.h"

namespace heed {

/// Returns a width or count. Fails unless it is at least 1. `name` begins the error: "Linear: out".
inline int64_t at_least_one(const char* name, int64_t value) {
  if (value < 1) fail(name, " = ", value, ". It must be at least 1.");
  return value;
}

/// Returns a dropout rate. Fails unless it is at least 0 and below 1. `name` begins the error.
inline double legal_dropout(const char* name, double value) {
  if (!(value >= 0 && value < 1)) fail(name, " = ", value, ". It must be at least 0 and below 1.");
  return value;
}

}  // namespace heed
