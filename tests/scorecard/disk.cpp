// Row L4: disks that are full, out of inodes, read-only, or with a limit on file size.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

constexpr int64_t page = 4096;

const std::vector<std::string> larger{"--d-model",          "32", "--d-ff",  "64",
                                      "--keep-checkpoints", "1",  "--steps", "60"};

/// One disk and what it is good for.
struct Disk {
  std::string what;
  std::string options;       ///< mount options of the tmpfs
  std::string before;        ///< shell, just before heed starts
  std::vector<int> reasons;  ///< that heed may name
  bool begins = false;       ///< a new run, instead of one that goes on
};

std::string quoted(const std::string& word) { return "'" + word + "'"; }

std::string line_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += quoted(word) + " ";
  return out;
}

/// Mounts in a name space of its own, which goes away with the command.
Command apart(const Scene& scene, const std::string& script) {
  std::vector<std::string> words{"unshare", "--mount"};
  if (::geteuid() != 0) words.emplace_back("--map-root-user");
  words.insert(words.end(), {"sh", "-c", script});
  return {.words = words, .folder = scene.room.path()};
}

/// What is wrong with the files that have a final name.
std::string complaint_on_files(const Path& run) {
  for (const int64_t step : checkpoints_of(run)) {
    std::string digits = text(step);
    digits.insert(0, 6 - digits.size(), '0');
    const Path folder = run / "ckpt" / ("step_" + digits);
    const Json manifest = parse_json(io::read(folder / "MANIFEST.json"), "MANIFEST.json");
    for (const JsonMember& file : manifest.at("files").members()) {
      if (io::size(folder / file.key) != file.value.at("size").integer())
        return text(folder / file.key, " is cut");
    }
  }
  for (const char* name : {"config.toml", "manifest.json"}) {
    if (io::exists(run / name) && !io::read(run / name).ends_with('\n')) return text(name, " is cut");
  }
  return complaint_on_torn_logs(run);
}

std::string reasons_of(const Disk& disk) {
  std::string out;
  for (const int reason : disk.reasons) out += text(out.empty() ? "'" : " or '", std::strerror(reason), "'");
  return out;
}

/// Runs heed on the disk; then the disk grows, and the run must end as if nothing had been.
std::string tried(const Scene& scene, const Disk& disk, const std::string& hash, bool& full) {
  io::remove_all(scene.room / "code");
  io::remove_all(scene.room / "during");
  io::remove_all(scene.room / "after");
  const std::vector<std::string> for_resume{"--time-limit", "0"};
  std::vector<std::string> train = tiny_train(scene, "disturbed", larger);
  std::vector<std::string> resume = tiny_resume("disturbed", for_resume);
  train.insert(train.end(), {"--out", "disk/runs"});
  resume[1] = "disk/runs/disturbed";
  const std::string program = quoted(scene.program.string()) + " ";
  const std::string first = program + line_of(disk.begins ? train : resume);
  const std::string script =
      text("set -e; mkdir -p disk; mount -t tmpfs -o ", disk.options, " tmpfs disk\n",
           disk.begins ? "" : "cp -r planted disk/runs\n", "set +e\n(", disk.before, first,
           ") 2>err; echo $? >code\nset -e; mount -o remount,rw,size=64m,nr_inodes=100000 disk\n",
           "if [ -d disk/runs ]; then cp -r disk/runs during; else mkdir during; fi\n",
           "if [ -d disk/runs/disturbed ]; then ", program, line_of(resume), "; else ", program,
           line_of(train), "; fi\ncp -r disk/runs after\n");
  const Ended end = run(apart(scene, script));
  if (!io::exists(scene.room / "code")) return "the disk could not be made: " + end.said();
  const std::string code = io::read(scene.room / "code"), err = io::read(scene.room / "err");
  full = code != "0\n";
  if (full) {
    if (code != "5\n") return text("code ", code, err);
    bool named = false;
    for (const int reason : disk.reasons)
      named = named || err.find(std::strerror(reason)) != std::string::npos;
    if (!named) return text("does not say ", reasons_of(disk), ": ", err);
  }
  const Path during = scene.room / "during" / "disturbed";
  if (!disk.begins && checkpoints_of(during).empty()) return "no checkpoint is left";
  if (io::exists(during)) {
    if (const std::string wrong = complaint_on_files(during); !wrong.empty()) return wrong;
  }
  if (!end.ok()) return "afterwards, with room: " + end.said();
  const Path after = scene.room / "after" / "disturbed";
  if (weights_hash(after) != hash) return "it ends with other weights";
  return complaint_on_logs(after, 60);
}

int64_t pages_of(const Path& folder) {
  int64_t pages = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) pages += (static_cast<int64_t>(entry.file_size()) + page - 1) / page;
  }
  return pages;
}

int64_t names_in(const Path& folder) {
  int64_t names = 2;  // the root of the disk, and the folder
  for ([[maybe_unused]] const auto& entry : std::filesystem::recursive_directory_iterator(folder)) ++names;
  return names;
}

/// Standard error or output that takes nothing.
std::string full_streams(const Scene& scene) {
  std::vector<std::string> words = tiny_train(scene, "loud", {"--steps", "3"});
  std::erase(words, "--quiet");
  Command loud = scene.heed(words);
  loud.err = "/dev/full";
  if (const Ended end = run(loud); !end.ok())
    return "a log that cannot be written stops the run: " + end.said();
  Command list = scene.heed({"list", "presets"});
  list.out = "/dev/full";
  const Ended end = run(list);
  if (end.code != 5 || end.err.find(std::strerror(ENOSPC)) == std::string::npos) {
    return "an answer that cannot be written does not show: " + end.said();
  }
  return "";
}

}  // namespace

Result disk_full(const Scene& scene) {
  const Ended recorder = run(apart(scene, "mkdir -p disk && mount -t tmpfs tmpfs disk"));
  if (!recorder.ok()) return skip("no disk can be mounted here: " + recorder.said());
  const std::string hash = reference_run(scene, larger).hash;
  io::remove_all(scene.room / "runs");
  std::vector<std::string> stopped = larger;
  stopped.insert(stopped.end(), {"--time-limit", "1e-6"});
  if (const Ended end = run(scene.heed(tiny_train(scene, "disturbed", stopped))); !end.ok()) {
    return {.verdict = Verdict::miss, .reached = "the planted run failed: " + end.said()};
  }
  std::filesystem::rename(scene.room / "runs", scene.room / "planted");

  const int64_t planted = pages_of(scene.room / "planted");
  const int64_t checkpoint = pages_of(scene.room / "planted" / "disturbed" / "ckpt");
  const int64_t sizes = scene.amount(4, 16);
  std::vector<Disk> disks;
  for (int64_t i = 0; i < sizes; ++i) {
    const int64_t free = 3 * checkpoint * i / (sizes - 1);
    disks.push_back(
        {text(free * page >> 10, " KiB free"), text("size=", (planted + free) * page), "", {ENOSPC}});
    const int64_t whole = 4 * checkpoint * (i + 1) / sizes;
    if (i % 2 == 0 || scene.whole) {
      disks.push_back({text("a new run on ", whole * page >> 10, " KiB"),
                       text("size=", whole * page),
                       "",
                       {ENOSPC},
                       true});
    }
  }
  const int64_t names = names_in(scene.room / "planted");
  for (const int64_t free : {0, 3, 7}) {
    disks.push_back({text(free, " names free"), text("size=64m,nr_inodes=", names + free), "", {ENOSPC}});
  }
  disks.push_back({"read only", "size=64m", "mount -o remount,ro disk; ", {EROFS}});
  disks.push_back({"files of 8 KiB at most", "size=64m", "ulimit -f 16; ", {EFBIG}});
  Tally tally;
  int64_t refused = 0;
  for (const Disk& disk : disks) {
    bool full = false;
    const std::string wrong = tried(scene, disk, hash, full);
    refused += full ? 1 : 0;
    tally.add(disk.what, wrong);
  }
  tally.add("/dev/full", full_streams(scene));
  return tally.result(text(" disks: ", refused,
                           " refused with code 5 and the reason, the others sufficed; no final "
                           "name on half a file; the same weights once there was room"));
}

}  // namespace heed::scorecard
