// Rows C1 and C3: the whole suite under the sanitizers, and what it covers.
#include "core/io.h"
#include "tests/scorecard/rows.h"
#include "tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

/// The line of ctest that counts.
std::string counted(const std::string& out) {
  const size_t at = out.find(" tests passed");
  if (at == std::string::npos) return "no tests ran";
  const size_t begin = out.rfind('\n', at) + 1;
  return out.substr(begin, out.find('\n', at) - begin);
}

}  // namespace

Result sanitizers(const Scene& scene) {
  if (!scene.whole) return skip("in the long form only: it builds and runs the suite twice more");
  Result result{.verdict = Verdict::ok, .reached = ""};
  for (const char* preset : {"asan", "tsan"}) {
    // Without the scorecard itself, which would wait for its own end.
    const Ended end = run({.words = {"./heed", "test", "-E", "^(scorecard|style|consumer)/"},
                           .folder = scene.source,
                           .environment = {{"HEED_PRESET", preset}},
                           .seconds = 4 * 3600});
    result.reached += text(preset, ": ", counted(end.out), "; ");
    if (end.ok()) continue;
    result.verdict = Verdict::miss;
    result.notes.push_back(text(preset, ": ", end.said()));
  }
  const Ended searched = run({.words = {"grep", "-rnE", "no_sanitize|__lsan_|suppressions=", "--include=*.h",
                                        "--include=*.cpp", "--include=CMake*", "core", "autograd", "nn",
                                        "attention", "data", "train", "CMakeLists.txt", "CMakePresets.json"},
                              .folder = scene.source});
  if (searched.ok()) {
    result.verdict = Verdict::miss;
    result.notes.push_back("suppressions: " + searched.out);
  }
  result.reached += searched.ok() ? "suppressions are there" : "0 suppressions";
  return result;
}

}  // namespace heed::scorecard
