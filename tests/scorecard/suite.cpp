// Rows C1 and C3: the test suite under sanitizers, and its coverage.
#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

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
  // OpenMPI keeps memory to its end: its processes alone are not asked what they leave. This file holds the
  // words.
  const Ended searched =
      run({.words = {"grep", "-rnE", "no_sanitize|__lsan_|suppressions=|detect_leaks=0", "--include=*.h",
                     "--include=*.cpp", "--include=*.sh", "--include=CMake*", "--exclude=suite.cpp",
                     "--exclude=mpirun_test.cpp", "core", "autograd", "nn", "attention", "data", "train",
                     "tests", "CMakeLists.txt", "CMakePresets.json"},
           .folder = scene.source});
  if (searched.ok()) {
    result.verdict = Verdict::miss;
    result.notes.push_back("suppressions: " + searched.out);
  }
  result.reached += searched.ok() ? "suppressions are there"
                                  : "0 suppressions; leaks are looked for but in processes of OpenMPI";
  return result;
}

Result coverage(const Scene& scene) {
  if (!scene.whole) return skip("in the long form only: it builds the suite once more");
  if (!have("gcov")) return skip("gcov is not installed");
  const Ended end = run({.words = {"sh", "tests/coverage.sh"}, .folder = scene.source, .seconds = 2 * 3600});
  Result result{.verdict = end.ok() ? Verdict::ok : Verdict::miss, .reached = ""};
  for (const char* folder : {"core", "autograd", "nn", "attention"}) {
    const size_t at = end.out.rfind(text("\n", folder, " "));
    const size_t share = end.out.rfind(" %", at == std::string::npos ? at : end.out.find('\n', at + 1));
    if (at == std::string::npos || share == std::string::npos) continue;
    const size_t number = end.out.rfind(' ', share - 1) + 1;
    result.reached +=
        text(result.reached.empty() ? "" : ", ", folder, " ", end.out.substr(number, share - number), " %");
  }
  if (!end.ok())
    result.notes.push_back(end.said() + " " +
                           end.out.substr(end.out.size() - std::min<size_t>(end.out.size(), 300)));
  if (result.reached.empty()) result.reached = "no coverage was measured";
  return result;
}

}  // namespace heed::scorecard
