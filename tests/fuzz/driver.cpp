// Runs a fuzz target without libFuzzer: its corpus, then a number of damaged copies, deterministically.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/tests/fuzz/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// What a signal handler needs to say which input broke the law: nothing but plain memory may be touched
// there.
char current[512];
const std::string* input = nullptr;

void put(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

/// Calls of the system alone: the reader may have died inside of malloc, whose lock nobody gives back.
void report(int signal) {
  const char number[] = {static_cast<char>('0' + signal / 10), static_cast<char>('0' + signal % 10)};
  for (const std::string_view part :
       {std::string_view("signal "), std::string_view(number, 2), std::string_view(" at "),
        std::string_view(current), std::string_view("; its bytes are in the file fuzz-finding\n")})
    put(STDERR_FILENO, part);
  if (const int file =
          input == nullptr ? -1 : ::open("fuzz-finding", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
      file >= 0) {
    put(file, *input);
    ::close(file);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// The handler has a stack of its own: where the reader ran out of stack it could not say so otherwise.
void report_deaths() {
  static char stack[64 << 10];
  stack_t own{};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  ::sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_handler = report;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
    ::sigaction(signal, &action, nullptr);
}

void feed(const std::string& name, const std::string& bytes) {
  std::snprintf(current, sizeof current, "%s (%zu bytes)", name.c_str(), bytes.size());
  input = &bytes;
  ::alarm(30);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  input = nullptr;
}

}  // namespace

/// fuzz_NAME CORPUS|FILE [MUTATIONS [FIRST]]
int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "%s CORPUS|FILE [MUTATIONS [FIRST]]\n", words[0]);
    return 2;
  }
  report_deaths();
  const heed::Path place = words[1];
  std::vector<std::string> corpus, names;
  if (heed::io::is_directory(place)) {
    for (const heed::Path& name : heed::io::list(place)) {
      corpus.push_back(heed::io::read(place / name));
      names.push_back(name.string());
    }
  } else {
    corpus.push_back(heed::io::read(place));
    names.push_back(place.string());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no corpus\n", words[1]);
    return 1;
  }
  for (size_t i = 0; i < corpus.size(); ++i) feed(names[i], corpus[i]);
  const long long mutations = count > 2 ? std::atoll(words[2]) : 0;
  const long long first = count > 3 ? std::atoll(words[3]) : 0;
  for (long long i = first; i < first + mutations; ++i) {
    const size_t base = static_cast<size_t>(i) % corpus.size();
    feed(names[base] + ", mutation " + std::to_string(i),
         heed::mutate(corpus[base], corpus, static_cast<uint64_t>(i)).bytes);
  }
  std::printf("%zu inputs of the corpus and %lld mutations: the law holds\n", corpus.size(), mutations);
  return 0;
}
