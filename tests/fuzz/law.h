// The law of everything that reads bytes it cannot trust, and how a fuzz target holds a reader to it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "tests/fuzz/refusal.h"

namespace heed::law {

/// What a reader may take beside the bytes it is given.
struct Bounds {
  int64_t heap = int64_t{64} << 20;  ///< bytes at most, beyond those of the input
  int64_t per_byte = 0;              ///< and this many more for each byte of the input
  double seconds = 1;                ///< of processor time; three times that under a sanitizer
  bool usage = false;                ///< a refusal may be a usage error too: what is read is a configuration
};

/// What became of one input.
struct Outcome {
  bool accepted = false;
  std::string message;  ///< of the refusal
  std::string broken;   ///< the law that was broken; empty when none was
  double seconds = 0;
  int64_t heap = 0;  ///< bytes at the peak
};

/// Calls the reader, which throws an Error when it refuses the input. The law:
/// - nothing but an Error is thrown, and it is Fault::data;
/// - its words are in order: see refusal.h;
/// - heap and time stay within the bounds.
Outcome outcome_of(std::string_view name, std::string_view input, const std::function<void()>& reader,
                   const Bounds& bounds = {});

/// The same; aborts with the reason when the law is broken. Returns whether the input was accepted.
bool obeys(std::string_view name, std::string_view input, const std::function<void()>& reader,
           const Bounds& bounds = {});

/// Aborts with the words when something does not hold that must, such as a round trip.
void demand(bool holds, std::string_view words);

/// Bytes that operator new has given and not got back, and the most there were since the last `mark_peak`.
int64_t heap_live();
int64_t heap_peak();
void mark_peak();

/// A file that holds the bytes, under a name that ends as asked; it is written anew by the next call with the
/// same ending, and gone at the end of the program.
Path planted(std::string_view bytes, const std::string& ending);

/// An empty folder of its own for files that belong together, likewise.
Path planted_folder();

}  // namespace heed::law
