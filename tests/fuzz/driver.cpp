// Runs a fuzz target without libFuzzer: its corpus, then as many damaged copies as asked for, always the
// same.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/io.h"
#include "tests/fuzz/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// What a signal handler needs to say which input broke the law: nothing but plain memory may be touched
// there.
char current[512];
const std::string* input = nullptr;

void report(int signal) {
  const char* finding = "fuzz-finding";
  std::fprintf(stderr, "signal %d at %s; its bytes are in the file %s\n", signal, current, finding);
  if (std::FILE* file = input == nullptr ? nullptr : std::fopen(finding, "wb")) {
    std::fwrite(input->data(), 1, input->size(), file);
    std::fclose(file);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
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
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, report);
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
