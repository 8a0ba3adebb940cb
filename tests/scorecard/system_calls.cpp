// Starts programs under strace and reads what it has written.
#include "heed/tests/scorecard/system_calls.h"

#include <map>

#include "heed/core/io/files.h"

namespace heed::scorecard {

std::string why_no_strace() {
  if (!have("strace")) return "strace is not installed";
  const Ended recorder = run({.words = {"strace", "-qq", "-o", "/dev/null", "true"}});
  return recorder.ok() ? "" : text("strace does not work here: ", recorder.said());
}

Command traced(const Scene& scene, const std::vector<std::string>& words,
               const std::vector<std::string>& how) {
  std::vector<std::string> all{"strace", "-f", "-qq", "-o", (scene.room / "trace").string()};
  all.insert(all.end(), how.begin(), how.end());
  all.push_back(scene.program.string());
  all.insert(all.end(), words.begin(), words.end());
  return {.words = all,
          .folder = scene.room.path(),
          .environment = {{"OPENBLAS_NUM_THREADS", "1"}},
          .seconds = 30};
}

Command killed_at(const Scene& scene, const std::vector<std::string>& words, const SystemCall& call) {
  return traced(scene, words,
                {"-e", text("trace=", call.name), "-e",
                 text("inject=", call.name, ":signal=SIGKILL:when=", call.when)});
}

std::vector<SystemCall> calls_of(const Scene& scene, const std::vector<std::string>& words, const char* names,
                                 const std::string& until) {
  const Ended end = run(traced(scene, words, {"-e", text("trace=", names)}));
  if (!end.ok()) fail(Fault::internal, "the traced run failed: ", end.said());
  std::vector<SystemCall> calls;
  std::map<std::string, int64_t> counts;
  bool begun = false;
  std::string first_process;
  const std::string trace = io::read(scene.room / "trace");
  for (size_t at = 0, stop = trace.find('\n'); stop != std::string::npos;
       at = stop + 1, stop = trace.find('\n', at)) {
    const std::string line = trace.substr(at, stop - at);
    const std::string process = line.substr(0, line.find(' '));
    if (first_process.empty()) first_process = process;
    const size_t name = line.find_first_not_of(' ', process.size());
    const size_t bracket = line.find('(');
    if (process != first_process || name == std::string::npos || bracket == std::string::npos) continue;
    if (line.find("resumed>") != std::string::npos) continue;
    SystemCall call{.name = line.substr(name, bracket - name)};
    call.when = ++counts[call.name];
    begun = begun || line.find("\"runs") != std::string::npos;
    if (begun) calls.push_back(call);
    if (begun && !until.empty() && line.find(until) != std::string::npos) break;
  }
  return calls;
}

}  // namespace heed::scorecard
