// How readers are held to the law: heap, time and the words of refusals.
#include "tests/fuzz/law.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <typeinfo>

#include "core/io.h"
#include "tests/scratch.h"

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

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Length of the valid UTF-8 sequence at the start, 0 for none. Written anew here: what is tested is not its
/// own judge.
size_t sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  return length;
}

/// Whether a number follows one of the words that say where.
bool has_place(std::string_view text) {
  for (const std::string_view word : {"byte ", "bytes ", "line ", ":"}) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      const size_t next = at + word.size();
      if (next < text.size() && is_digit(text[next])) return true;
    }
  }
  return false;
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

std::string fault_of_refusal(std::string_view name, std::string_view message) {
  if (message.size() > 4000) return "the refusal is longer than 4,000 bytes";
  for (size_t at = 0; at < message.size();) {
    const size_t length = sequence(message.substr(at));
    const auto first = static_cast<unsigned char>(message[at]);
    const bool control = (first < 0x20 && first != '\n') || first == 0x7F ||
                         (first == 0xC2 && length == 2 && static_cast<unsigned char>(message[at + 1]) < 0xA0);
    if (length == 0 || control)
      return text("byte ", at, " of the refusal is none that a terminal may be sent");
    at += length;
  }
  const size_t at = message.find(name);
  if (at == std::string_view::npos) return text("the refusal does not name the file ", name);
  std::string rest(message);
  rest.erase(at, name.size());
  if (!has_place(rest)) return "the refusal names no place in the file";
  return {};
}

bool obeys(std::string_view name, std::string_view input, const std::function<void()>& reader,
           const Bounds& bounds, std::string* message) {
  const int64_t before = heap_live();
  mark_peak();
  const double start = processor_seconds();
  std::string said;
  bool accepted = true;
  try {
    reader();
  } catch (const Error& error) {
    accepted = false;
    said = error.what();
    const bool fitting = error.fault() == Fault::data || (bounds.usage && error.fault() == Fault::usage);
    demand(fitting, text("an Error of the kind ", static_cast<int>(error.fault()), ": ", said));
  } catch (const std::exception& error) {
    demand(false, text("no Error but ", typeid(error).name(), ": ", error.what()));
  }
  const double seconds = processor_seconds() - start;
  const int64_t heap = heap_peak() - before;
  const auto size = static_cast<int64_t>(input.size());
  const int64_t most = bounds.heap + size + bounds.per_byte * size;
  demand(heap <= most, text(heap, " bytes of heap for an input of ", size, "; at most ", most, ". ", said));
  demand(seconds <= bounds.seconds * patience, text(seconds, " seconds for ", size, " bytes. ", said));
  if (!accepted) {
    const std::string fault = fault_of_refusal(name, said);
    demand(fault.empty(), text(fault, ": ", said));
  }
  if (message != nullptr) *message = said;
  return accepted;
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
