// Rows U1-U3: a cold start, a clean system, no network.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

/// Asks the system to forget the pages of a file, so that the next start reads them from the disk.
void forget(const Path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

std::string milliseconds(double seconds) { return text(static_cast<int64_t>(seconds * 1000 + 0.5), " ms"); }

std::vector<std::string> without_network(const Scene& scene, const std::vector<std::string>& words) {
  std::vector<std::string> all{"unshare", "--net"};
  if (::geteuid() != 0) all.emplace_back("--map-root-user");
  all.push_back(scene.program.string());
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

}  // namespace

Result cold_start(const Scene& scene) {
  const Ended libraries = run([&] {
    Command command = scene.heed({"--version"});
    command.environment = {{"LD_TRACE_LOADED_OBJECTS", "1"}};
    return command;
  }());
  Tally tally;
  for (const char* name : {"cuda", "cublas", "nccl"}) {
    if (libraries.out.find(name) != std::string::npos) tally.fault(text("it loads a library of ", name));
  }
  std::vector<double> times, processor;
  int64_t peak = 0;
  double cold = INFINITY;  // the quickest of three: what else the machine does is no part of it
  for (int i = 0; i < 3; ++i) {
    forget(scene.program);
    cold = std::min(cold, run(scene.heed({"--version"})).seconds);
  }
  for (int64_t i = 0; i < scene.amount(10, 100); ++i) {
    const Ended end = run(scene.heed({"--version"}));
    tally.add("heed --version", end.ok() && end.out.starts_with("heed ") ? "" : end.said());
    times.push_back(end.seconds);
    processor.push_back(end.cpu);
    peak = std::max(peak, end.peak_kib);
  }
  std::sort(times.begin(), times.end());
  std::sort(processor.begin(), processor.end());
  const double median = times[times.size() / 2];
  // Beside other tests only the processor's time is a measure.
  if ((scene.whole ? median : processor[processor.size() / 2]) > (scene.whole ? 0.020 : 0.060))
    tally.fault("it takes more than 20 ms");
  if (scene.whole && cold > 0.020) tally.fault("from the disk it takes more than 20 ms");
  if (peak > 16 << 10) tally.fault("it takes more than 16 MiB");
  return tally.result(text(" starts: median ", milliseconds(median), ", from the disk ", milliseconds(cold),
                           ", at most ", peak >> 10, " MiB; no CUDA library"));
}

Result clean_container(const Scene& scene) {
  if (!scene.whole) return skip("in the long form only: it installs a Debian of its own");
  if (::geteuid() != 0) return skip("it needs root for debootstrap and chroot");
  if (!have("debootstrap")) return skip("debootstrap is not installed");
  const Path system = scene.room / "system";
  const auto within = [&](const std::string& line) {
    return Command{
        .words = {"chroot", system.string(), "sh", "-c", line},
        .environment = {{"HEED_DATA", ""}, {"HEED_PRESET", ""}, {"OPENBLAS_CORETYPE", ""}, {"CI", ""}},
        .seconds = 1800};
  };
  const Ended made =
      run({.words = {"debootstrap", "--variant=minbase", "bookworm", system.string()}, .seconds = 1200});
  if (!made.ok()) return skip("debootstrap could not make a system (no network?): " + made.said());
  for (const char* name : {"resolv.conf", "hosts"}) {
    std::error_code ignored;
    std::filesystem::copy_file(Path("/etc") / name, system / "etc" / name,
                               std::filesystem::copy_options::overwrite_existing, ignored);
  }
  // A checkout, as git clone would leave it.
  const Ended copied = run({.words = {"sh", "-c",
                                      "git -C \"$1\" ls-files -z | tar -C \"$1\" --null -T - -cf - | (mkdir "
                                      "\"$2\" && tar -C \"$2\" -xf -)",
                                      "sh", scene.source.string(), (system / "heed").string()}});
  if (!copied.ok())
    return {.verdict = Verdict::miss, .reached = "the checkout could not be copied: " + copied.said()};
  run(within("mount -t proc proc /proc; mount -t devpts devpts /dev/pts; apt-get clean"));
  run(within("printf 'Binary::apt::APT::Keep-Downloaded-Packages \"true\";\\n' >/etc/apt/apt.conf.d/99keep"));
  // At a terminal on which nobody answers.
  const Ended trained =
      run(within("cd /heed && script -qec './heed train translate --steps 20' /dev/null </dev/null"));
  const Ended size = run(within("du -sk /var/cache/apt/archives | cut -f1"));
  run(within("umount /dev/pts /proc"));
  const int64_t mebibytes = std::strtoll(size.out.c_str(), nullptr, 10) >> 10;
  int64_t questions = 0;  // the terminal's output holds both streams
  for (size_t at = 0; (at = trained.out.find("[Y/n]", at)) != std::string::npos; ++at) ++questions;
  Result result{
      .verdict = Verdict::ok,
      .reached = text("git clone and ./heed train translate: ", static_cast<int64_t>(trained.seconds), " s, ",
                      mebibytes, " MiB of packages, ", questions, " questions")};
  if (!trained.ok() || trained.seconds > 300 || mebibytes > 300 || questions > 0)
    result.verdict = Verdict::miss;
  if (!trained.ok()) result.notes = {trained.said()};
  return result;
}

Result no_network(const Scene& scene) {
  const Ended recorder = run({.words = [&] {
    std::vector<std::string> words = without_network(scene, {"--version"});
    return words;
  }()});
  if (!recorder.ok()) return skip("no name space without network can be had here: " + recorder.said());
  Tally tally;
  const auto must = [&](const std::vector<std::string>& words, int code, const std::string& says) {
    const Ended end = run({.words = without_network(scene, words), .folder = scene.room.path()});
    std::string wrong = end.code == code ? "" : end.said();
    if (wrong.empty() && (end.out + end.err).find(says) == std::string::npos)
      wrong = text("does not say '", says, "': ", end.said());
    tally.add(words[0], wrong);
  };
  must(tiny_train(scene, "alone"), 0, "");
  must(tiny_resume("alone", {"--steps", "210"}), 0, "");
  must({"evaluate", "runs/alone"}, 0, "loss");
  must({"generate", "runs/alone", "--max-new-tokens", "5"}, 0, "");
  must({"inspect", "runs/alone", "the old man"}, 0, "");
  must({"list", "runs"}, 0, "alone");
  must({"env"}, 0, "heed");
  must({"train", "translate", "--num-examples", "300", "--validation", "10", "--test-size", "10", "--steps",
        "2", "--quiet"},
       0, "");
  if (have("curl")) {
    must({"data", "get", "tinyshakespeare", "--out", "got"}, 5, "Is there a network?");
  } else {
    must({"data", "get", "tinyshakespeare", "--out", "got"}, 5, "apt-get install curl");
  }
  return tally.result(
      " commands without a network: all work with data at hand; fetching says that there is none");
}

}  // namespace heed::scorecard
