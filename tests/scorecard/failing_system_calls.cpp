// Rows L2 and L3: a run that is killed at, or gets an error from, each of its system calls (injected by
// strace).
#include <cerrno>
#include <cstring>
#include <map>

#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/system_calls.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

constexpr const char* asking =
    "openat,write,pwrite64,fsync,rename,renameat2,close,unlink,unlinkat,rmdir,mkdir,"
    "ftruncate,flock,read,lseek,fstat,newfstatat,getdents64";

/// What is disturbed: a run from its first step, or one that goes on from its first checkpoint. Both save at
/// the steps 3 and 6 and keep one checkpoint, so that saving, replacing and pruning all happen.
struct Phase {
  const char* name;
  std::vector<std::string> words;
  bool begins_with_checkpoint;
};

const std::vector<std::string> for_train{"--steps",          "6", "--checkpoint-every", "3",
                                         "--validate-every", "3", "--keep-checkpoints", "1"};
const std::vector<std::string> for_resume{"--time-limit", "0"};

void plant(const Scene& scene, const Phase& phase) {
  io::remove_all(scene.room / "runs");
  if (!phase.begins_with_checkpoint) return;
  std::filesystem::copy(scene.room / "planted", scene.room / "runs",
                        std::filesystem::copy_options::recursive);
}

/// The two phases, with what they need planted; empty and a reason where strace may not work.
std::vector<Phase> phases(const Scene& scene, std::string& hash, std::string& why_not) {
  why_not = why_no_strace();
  if (!why_not.empty()) return {};
  hash = reference_run(scene, for_train).hash;
  io::remove_all(scene.room / "runs");
  std::vector<std::string> stopped = for_train;
  stopped.insert(stopped.end(), {"--time-limit", "1e-6"});
  const Ended end = run(scene.heed(tiny_train(scene, "disturbed", stopped)));
  if (!end.ok()) fail(Fault::internal, "the planted run failed: ", end.said());
  std::filesystem::rename(scene.room / "runs", scene.room / "planted");
  return {{"train", tiny_train(scene, "disturbed", for_train), false},
          {"resume", tiny_resume("disturbed", for_resume), true}};
}

/// What is wrong after a disturbance: no checkpoint where there was one, or a run that does not end as it
/// should.
std::string aftermath(const Scene& scene, const Phase& phase, const std::string& hash) {
  const Path run = run_of(scene, "disturbed");
  if (phase.begins_with_checkpoint && checkpoints_of(run).empty()) return "no checkpoint is left";
  std::string complaint = finish(scene, "disturbed", for_train, for_resume);
  if (complaint.empty() && weights_hash(run) != hash) complaint = "it ends with other weights";
  if (complaint.empty()) complaint = complaint_on_logs(run, 6);
  if (complaint.empty()) complaint = leftovers(scene);
  return complaint;
}

std::string counted(const std::map<std::string, int64_t>& counts) {
  std::string out;
  for (const auto& [name, count] : counts) out += text(out.empty() ? " (" : ", ", name, " ", count);
  return out.empty() ? out : out + ")";
}

/// What is wrong with a run of which one call failed.
std::string judged(const Ended& end, int error) {
  if (end.ok()) return "";
  const std::string reason = std::strerror(error);
  if (error == EINTR) return "an interrupted call shows: " + end.said();
  if (end.code != 5) return "neither went on nor code 5: " + end.said();
  if (end.err.find(reason) == std::string::npos) return text("does not say '", reason, "': ", end.said());
  return "";
}

}  // namespace

Result killed_at_every_call(const Scene& scene) {
  std::string hash, why_not;
  const std::vector<Phase> both = phases(scene, hash, why_not);
  if (!why_not.empty()) return skip(why_not);
  Tally tally;
  std::map<std::string, int64_t> counts;
  for (const Phase& phase : both) {
    plant(scene, phase);
    const std::vector<SystemCall> calls = calls_of(scene, phase.words, changing_calls);
    const int64_t stride = scene.amount(static_cast<int64_t>(calls.size()) / 8, 1);
    for (size_t i = static_cast<size_t>(scene.seed) % static_cast<size_t>(stride); i < calls.size();
         i += static_cast<size_t>(stride)) {
      const SystemCall& call = calls[i];
      plant(scene, phase);
      const Ended end = run(killed_at(scene, phase.words, call));
      std::string wrong;
      if (end.signal != 9 && end.code != 137) wrong = "the kill did not come: " + end.said();
      if (wrong.empty()) wrong = aftermath(scene, phase, hash);
      tally.add(text(phase.name, " killed at ", call.name, " ", call.when), wrong);
      ++counts[call.name];
    }
  }
  return tally.result(" kills" + counted(counts) +
                      ": a loadable checkpoint, the same last weights, nothing left behind");
}

Result failed_at_every_call(const Scene& scene) {
  std::string hash, why_not;
  const std::vector<Phase> both = phases(scene, hash, why_not);
  if (!why_not.empty()) return skip(why_not);
  Tally tally;
  int64_t went_on = 0;
  std::map<std::string, int64_t> counts;
  const std::vector<std::pair<const char*, int>> errors{
      {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EINTR", EINTR}};
  for (const Phase& phase : both) {
    plant(scene, phase);
    const std::vector<SystemCall> calls = calls_of(scene, phase.words, asking);
    const int64_t stride = scene.amount(static_cast<int64_t>(calls.size()) / 4, 1);
    int64_t turn = 0;
    for (const auto& [name, error] : errors) {
      for (size_t i = static_cast<size_t>(turn++ % stride); i < calls.size();
           i += static_cast<size_t>(stride)) {
        const SystemCall& call = calls[i];
        plant(scene, phase);
        const Ended end = run(traced(scene, phase.words,
                                     {"-e", text("trace=", call.name), "-e",
                                      text("inject=", call.name, ":error=", name, ":when=", call.when)}));
        std::string wrong = end.hung ? "it hangs" : judged(end, error);
        went_on += end.ok() ? 1 : 0;
        if (wrong.empty()) wrong = aftermath(scene, phase, hash);
        tally.add(text(phase.name, ", ", call.name, " ", call.when, " fails with ", name), wrong);
        ++counts[name];
      }
    }
    plant(scene, phase);
    Command whole = scene.heed(phase.words);
    whole.environment = {{"LD_PRELOAD", (scene.build / "tests/libshort_writes.so").string()}};
    const Ended end = run(whole);
    std::string wrong = end.ok() ? "" : "short reads and writes show: " + end.said();
    if (wrong.empty()) wrong = aftermath(scene, phase, hash);
    tally.add(text(phase.name, ", every read and write short and interrupted"), wrong);
    ++counts["all short"];
  }
  return tally.result(
      text(" failures", counted(counts), ": ", went_on,
           " runs went on, the others ended with code 5 and the reason; all good afterwards"));
}

}  // namespace heed::scorecard
