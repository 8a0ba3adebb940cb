// The version of Heed. CMake reads it here.
#pragma once

// Semantic version: docs/explanation/versioning.md says what each number promises.
/// Counts changes that break programs; while it is 0, MINOR counts them.
#define HEED_VERSION_MAJOR 0
/// Counts additions; while MAJOR is 0, changes that break programs too.
#define HEED_VERSION_MINOR 1
/// Counts corrections.
#define HEED_VERSION_PATCH 0
/// The version as text: "MAJOR.MINOR.PATCH".
#define HEED_VERSION "0.1.0"
