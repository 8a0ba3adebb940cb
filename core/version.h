// The version of Heed. CMake reads it here.
#pragma once

/// Semantic version: MAJOR counts changes that break programs (below 1.0: MINOR does), MINOR additions, PATCH
/// corrections.
#define HEED_VERSION_MAJOR 0
#define HEED_VERSION_MINOR 1
#define HEED_VERSION_PATCH 0
/// The same as text: "MAJOR.MINOR.PATCH".
#define HEED_VERSION "0.1.0"
