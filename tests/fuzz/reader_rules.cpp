// Checks the rules for readers of untrusted bytes.
#include "heed/tests/fuzz/reader_rules.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <typeinfo>

#include "heed/core/io/files.h"
#include "heed/tests/scratch.h"

namespace heed::law {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr double patience = 3;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr double patience = 3;
#else
constexpr double patience = 1;
#endif
#else
constexpr double patience = 1;
#endif

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// In memory where there is such a folder: what a reader is given need not survive a power cut.
Scratch& scratch() {
  static Scratch folder(io::is_directory("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path());
  return folder;
}

}  // namespace

void demand(bool holds, std::string_view words) {
  if (holds) return;
  std::fprintf(stderr, "the law is broken: %.*s\n", static_cast<int>(words.size()), words.data());
  std::fflush(stderr);
  std::abort();
}

Outcome outcome_of(std::string_view name, std::string_view input, const std::function<void()>& reader,
                   const Bounds& bounds) {
  Outcome found;
  const int64_t before = heap_live();
  mark_peak();
  const double start = processor_seconds();
  try {
    reader();
    found.accepted = true;
  } catch (const Error& error) {
    found.message = error.what();
    const bool fitting = error.fault() == Fault::data || (bounds.usage && error.fault() == Fault::usage) ||
                         (bounds.numeric && error.fault() == Fault::numeric);
    if (!fitting) found.broken = text("an Error of the kind ", static_cast<int>(error.fault()));
  } catch (const std::exception& error) {
    found.message = error.what();
    found.broken = text("no Error but ", typeid(error).name());
  }
  found.seconds = processor_seconds() - start;
  found.heap = heap_peak() - before;
  const auto size = static_cast<int64_t>(input.size());
  const int64_t maximum = bounds.heap + size + bounds.per_byte * size;
  if (!found.broken.empty()) return found;
  if (found.heap > maximum) {
    found.broken = text(found.heap, " bytes of heap for an input of ", size, ", at most ", maximum);
  } else if (found.seconds > bounds.seconds * patience) {
    found.broken = text(found.seconds, " seconds for ", size, " bytes");
  } else if (!found.accepted) {
    found.broken = fault_of_refusal(name, found.message, bounds.parts);
  }
  return found;
}

bool obeys(std::string_view name, std::string_view input, const std::function<void()>& reader,
           const Bounds& bounds) {
  const Outcome found = outcome_of(name, input, reader, bounds);
  demand(found.broken.empty(), text(found.broken, ": ", found.message));
  return found.accepted;
}

Path planted(std::string_view bytes, const std::string& ending) {
  const Path path = scratch() / ("input" + ending);
  io::write_plain(path, std::span(&bytes, 1));
  return path;
}

Path planted_folder() {
  const Path folder = scratch() / "folder";
  io::remove_all(folder);
  io::make_directories(folder);
  return folder;
}

}  // namespace heed::law
