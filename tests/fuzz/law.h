// The law of everything that reads bytes it cannot trust, and how a fuzz target holds a reader to it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace heed::law {

/// What a reader may take beside the bytes it is given.
struct Bounds {
  int64_t heap = int64_t{64} << 20;  ///< bytes at most, beyond those of the input
  int64_t per_byte = 0;              ///< and this many more for each byte of the input
  double seconds = 1;                ///< of processor time; three times that under a sanitizer
  bool usage = false;                ///< a refusal may be a usage error too: what is read is a configuration
};

/// Calls the reader, which throws an Error when it refuses the input. Aborts with the reason unless
/// - nothing but an Error is thrown, and it is Fault::data;
/// - its text names the file `name` and a place in it (a byte or a line), is UTF-8 without control
/// characters,
///   and no longer than 4,000 bytes;
/// - heap and time stay within the bounds.
/// Returns whether the input was accepted; `message`, when given, gets the text of the refusal.
bool obeys(std::string_view name, std::string_view input, const std::function<void()>& reader,
           const Bounds& bounds = {}, std::string* message = nullptr);

/// What is wrong with a refusal; empty when nothing is.
std::string fault_of_refusal(std::string_view name, std::string_view message);

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
