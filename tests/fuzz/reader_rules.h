// The rules for readers of untrusted bytes, and their check in fuzz targets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "heed/core/error.h"
#include "heed/tests/fuzz/refusal.h"

namespace heed::law {

/// Limits of a reader's resources.
struct Bounds {
  int64_t heap = int64_t{64} << 20;  ///< maximum bytes, besides the input
  int64_t per_byte = 0;              ///< and so many more per byte of the input
  double seconds = 1;                ///< CPU time; three times as much with a sanitizer
  bool usage = false;                ///< the reader may throw a usage error too: it reads a configuration
  bool parts = false;                ///< errors name tensors or settings as places, not bytes or lines alone
  bool numeric = false;              ///< and Fault::numeric: it reads weights, which may be NaN
};

/// The result of one input.
struct Outcome {
  bool accepted = false;
  std::string message;  ///< message of the error
  std::string broken;   ///< the violated rule; empty when none
  double seconds = 0;
  int64_t heap = 0;  ///< peak bytes
};

/// Calls the reader, which throws an Error for bad input. The rules:
/// - it throws nothing but an Error, and that is Fault::data, or what the bounds allow beside it;
/// - the message is well-formed: see refusal.h;
/// - heap and time stay within the bounds.
Outcome outcome_of(std::string_view name, std::string_view input, const std::function<void()>& reader,
                   const Bounds& bounds = {});

/// Checks a reader by outcome_of() and aborts with the reason when a rule is violated. Returns true if the
/// reader accepted the input.
bool obeys(std::string_view name, std::string_view input, const std::function<void()>& reader,
           const Bounds& bounds = {});

/// Aborts with the message unless `holds`, for example for a round trip.
void demand(bool holds, std::string_view words);

/// Bytes allocated by operator new and not freed, and their peak since the last mark_peak().
int64_t heap_live();
int64_t heap_peak();
void mark_peak();

/// A file with these bytes, whose name has this ending. The next call with the same ending replaces it; it is
/// removed at the end of the program.
Path planted(std::string_view bytes, const std::string& ending);

/// An empty folder for files that belong together, with the same lifetime.
Path planted_folder();

}  // namespace heed::law
