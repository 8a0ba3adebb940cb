// Rows S4 and S5: runs in separate process namespaces, and links in run folders.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

/// The program as the first process of a namespace, as in a container.
Command contained(const Scene& scene, const std::vector<std::string>& words) {
  Command command = scene.heed(words);
  command.words.insert(command.words.begin(), {"unshare", "--pid", "--fork", "--mount-proc"});
  return command;
}

std::vector<Ended> start_all(const Scene& scene, const std::vector<std::string>& words) {
  std::vector<Process> all;
  for (int i = 0; i < 8; ++i) all.emplace_back(contained(scene, words));
  std::vector<Ended> ends;
  for (Process& one : all) ends.push_back(one.wait());
  return ends;
}

/// What is wrong with eight that start at once without a name: each gets a run of its own.
std::string each_has_one(const Scene& scene, const std::string& out) {
  std::vector<std::string> words = tiny_train(scene, "unused", {"--steps", "3", "--out", out});
  const auto name = std::find(words.begin(), words.end(), "--name");
  words.erase(name, name + 2);
  for (const Ended& end : start_all(scene, words)) {
    if (!end.ok()) return end.said();
  }
  const size_t count = io::list(scene.room / out).size();
  return count == 8 ? "" : text(count, " folders, not 8");
}

/// What is wrong with eight that start at once with one name: one gets it, whatever became of claims before.
std::string one_has_it(const Scene& scene, const std::string& out) {
  io::make_directories(scene.room / out / ".x.1.claim");
  int64_t won = 0;
  for (const Ended& end : start_all(scene, tiny_train(scene, "x", {"--steps", "3", "--out", out}))) {
    won += end.ok() ? 1 : 0;
    if (!end.ok() && end.code != 6 && end.code != 2) return end.said();  // busy, or done already
  }
  if (won != 1) return text(won, " got the name, not 1");
  return io::list(scene.room / out) == std::vector<Path>{"x"} ? "" : "something is left beside the run";
}

/// All that must stay as it is: the names and bytes in a folder.
std::string contents(const Path& folder) {
  std::string all;
  for (const Path& name : io::list(folder))
    all +=
        text(name, "\n", io::is_directory(folder / name) ? contents(folder / name) : io::read(folder / name));
  return all;
}

/// What is wrong with how a verb takes a run in which `name` leads to `target`; "pipe" makes it one.
std::string refused(const Scene& scene, const std::string& name, const std::string& target,
                    const std::vector<std::string>& words) {
  const Path run_folder = scene.room / "foreign", victim = scene.room / "victim", path = run_folder / name;
  io::remove_all(run_folder);
  io::remove_all(victim);
  io::remove_all(scene.room / "nowhere");
  std::filesystem::copy(run_of(scene, "whole"), run_folder, std::filesystem::copy_options::recursive);
  std::filesystem::copy(run_of(scene, "whole"), victim, std::filesystem::copy_options::recursive);
  const std::string before = contents(victim);
  io::remove_all(path);
  const bool pipe = target == "pipe";
  const Path to = scene.room / target;
  if ((pipe ? ::mkfifo(path.c_str(), 0600) : ::symlink(to.c_str(), path.c_str())) != 0)
    return "it cannot be planted";
  Command command = scene.heed(words);
  command.seconds = 20;
  const Ended end = run(command);
  if (contents(victim) != before) return "what the link leads to is changed: " + end.said();
  if (io::is_there(scene.room / "nowhere")) return "what the link leads to is created: " + end.said();
  if (end.hung || end.code != 5) return "not code 5: " + end.said();
  const std::string expected = text(name, pipe ? " is a pipe" : " is a link to " + to.string());
  return end.err.find(expected) != std::string::npos ? ""
                                                     : text("does not say '", expected, "': ", end.said());
}

/// Every command that reads a run, of the one that pipe_in_place_of() plants; what they write goes elsewhere.
const std::vector<std::vector<std::string>> reading_commands{
    {"list", "runs", "--out", "pipes"},
    {"show", "pipes/x"},
    {"evaluate", "pipes/x"},
    {"train", "--from", "pipes/x", "--name", "next", "--out", "out", "--steps", "2", "--quiet"},
    {"compare", "pipes/x", "runs/whole", "--out", "out"},
    {"inspect", "pipes/x", "the", "--out", "out"},
    {"inspect", "pipes/x", "--through-training", "--out", "out"},
    {"maps", "pipes/x", "--data", "line.txt", "--count", "1", "--out", "out"},
    {"heads", "pipes/x", "--file", "line.txt", "--examples", "2", "--out", "out"},
    {"structure", "pipes/x", "the"},
    {"generate", "pipes/x", "--max-new-tokens", "2"},
    {"export", "pipes/x", "--out", "out"}};

/// The names of all files in a folder and the folders below it.
std::vector<std::string> files_below(const Path& folder, const std::string& before = "") {
  std::vector<std::string> all;
  for (const Path& name : io::list(folder)) {
    const std::string whole = before + name.string();
    if (!io::is_directory(folder / name)) {
      all.push_back(whole);
      continue;
    }
    for (const std::string& one : files_below(folder / name, whole + "/")) all.push_back(one);
  }
  return all;
}

/// What is wrong with how a command takes a run in which a pipe has the place of a file: it may not wait for
/// it, and where it reads it, it names it. Counts in `named` those that did.
std::string pipe_in_place_of(const Scene& scene, const std::string& file,
                             const std::vector<std::string>& words, int64_t& named) {
  const Path folder = scene.room / "pipes";
  for (const Path& old : {folder, scene.room / "out"}) io::remove_all(old);
  io::make_directories(folder);
  std::filesystem::copy(run_of(scene, "fine"), folder / "x", std::filesystem::copy_options::recursive);
  if (file.starts_with("initial/")) {  // read before the first checkpoint alone
    for (const char* later :
         {"ckpt", "tb", "maps", "metrics.jsonl", "metrics.csv", "scores.json", "report.html"})
      io::remove_all(folder / "x" / later);
    const Path manifest = folder / "x" / "manifest.json";
    io::write(manifest, parse_json(io::read(manifest), "manifest").set("first_checkpoint", Json()).dump());
  }
  const Path path = folder / "x" / file;
  io::remove_all(path);
  if (::mkfifo(path.c_str(), 0600) != 0) return "it cannot be planted";
  Command command = scene.heed(words);
  command.seconds = 20;
  const Ended end = run(command);
  if (end.hung) return words[0] + " waits for it";
  const std::string said = end.out + end.err;
  const bool names = said.find(file) != std::string::npos && said.find(" a pipe") != std::string::npos;
  named += names ? 1 : 0;
  if (names) return end.code == 5 || words[0] == "list" ? "" : "named, but not code 5: " + end.said();
  const bool unfinished = file.starts_with("initial/") && !end.hung;  // it has nothing that others could read
  return end.ok() || unfinished ? "" : end.said();
}

/// Every file of a run of each kind becomes a pipe, for every command that reads runs: some of them in the
/// short form, but resume, which reads all, always.
void pipes_for_readers(const Scene& scene, Tally& tally) {
  const Ended trained = run(
      scene.heed({"train", "--from", "runs/whole", "--name", "fine", "--steps", "20", "--maps-every", "10",
                  "--checkpoint-every", "20", "--keep-checkpoints", "1", "--threads", "1", "--quiet"}));
  io::write(scene.room / "line.txt", "the\n");
  if (!trained.ok()) return tally.fault("the run with weights of another: " + trained.said());
  const std::vector<std::string> resume{"resume", "pipes/x", "--steps", "22", "--threads", "1", "--quiet"};
  size_t turn = 0;
  for (const std::string& file : files_below(run_of(scene, "fine"))) {
    int64_t named = 0;
    tally.add(text(file, " a pipe, resume"), pipe_in_place_of(scene, file, resume, named));
    const size_t stride = scene.whole ? 1 : 6;
    for (size_t i = turn++ % stride; i < reading_commands.size(); i += stride)
      tally.add(text(file, " a pipe"), pipe_in_place_of(scene, file, reading_commands[i], named));
    if (named == 0) tally.fault(file + ": no command refuses a pipe in its place");
  }
}

}  // namespace

Result starts_side_by_side(const Scene& scene) {
  if (!have("unshare") || !run(contained(scene, {"--version"})).ok())
    return skip("process namespaces (unshare --pid) are not permitted here");
  Tally tally;
  for (int64_t i = 0; i < scene.amount(1, 20); ++i) {
    tally.add("8 without a name", each_has_one(scene, text("numbered", i)));
    tally.add("8 with one name", one_has_it(scene, text("named", i)));
  }
  return tally.result(
      " times 8 starts in namespaces of their own: a run each without a name, 1 run with one");
}

Result links_in_runs(const Scene& scene) {
  const Ended trained = run(scene.heed(tiny_train(scene, "whole", {"--steps", "40"})));
  Tally tally;
  if (!trained.ok()) tally.fault("the run itself: " + trained.said());
  const std::vector<std::string> resume = tiny_resume("whole", {"--steps", "60"});
  std::vector<std::string> words = resume;
  for (std::string& word : words) word = word == "runs/whole" ? "foreign" : word;
  for (const char* file : {"lock", "metrics.jsonl", "metrics.csv", "manifest.json", "config.toml",
                           "report.html", "samples.txt", "scores.json", "ckpt/best.json"}) {
    for (const char* target : {"nowhere", "pipe"})
      tally.add(text(file, " to ", target), refused(scene, file, target, words));
    tally.add(text(file, " to a file"), refused(scene, file, text("victim/", file), words));
  }
  const Path tb = run_of(scene, "whole") / "tb";
  for (const Path& name : io::list(tb)) {
    const std::string file = text("tb/", name);
    tally.add("an event file", refused(scene, file, "victim/" + file, words));
    tally.add("an event file to a pipe", refused(scene, file, "pipe", words));
  }
  for (const char* folder : {"ckpt", "tb"}) {
    tally.add(folder, refused(scene, folder, text("victim/", folder), words));
  }
  tally.add("inspect", refused(scene, "inspect", "victim", {"inspect", "foreign", "the"}));
  pipes_for_readers(scene, tally);
  // The folder of a run itself may be a link.
  io::remove_all(scene.room / "foreign");
  std::filesystem::create_directory_symlink(run_of(scene, "whole"), scene.room / "foreign");
  const Ended end = run(scene.heed(words));
  tally.add("the run a link", end.ok() ? "" : end.said());
  return tally.result(
      " hold: refused with code 5 and the link's name, nothing outside touched, no pipe waited for");
}

}  // namespace heed::scorecard
