// Starting programs as several processes, and comparing their runs.
#pragma once

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/metrics_log.h"

namespace heed {

inline bool on_path(const std::string& program) {
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) {
    if (io::exists(Path(folder) / program)) return true;
  }
  return false;
}

inline bool mpirun_is_there() {
  if (on_path("mpirun")) return true;
  WARN("skipped: there is no mpirun (Debian: openmpi-bin)");
  return false;
}

#ifdef __SANITIZE_THREAD__
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif

/// What starts the program as so many processes; tests may run as root and on two cores. OpenMPI keeps some
/// of its memory to the end: under AddressSanitizer these processes are not asked what they have left. Its
/// TCP takes two locks in either order: under ThreadSanitizer they speak through shared memory.
inline std::vector<std::string> as_processes(int count) {
  const char* options = std::getenv("ASAN_OPTIONS");
  const std::string given = options != nullptr ? text(options, ":") : "";
  std::vector<std::string> words{"ASAN_OPTIONS=" + given + "detect_leaks=0",
                                 "mpirun",
                                 "--allow-run-as-root",
                                 "--oversubscribe",
                                 "--bind-to",
                                 "none",
                                 "-n",
                                 std::to_string(count)};
  if (under_tsan) words.insert(words.begin() + 2, {"--mca", "btl", "self,vader"});
  return words;
}

inline std::vector<double> series(const Path& run, const std::string& name) {
  for (const MetricSeries& one : read_metrics(run / "metrics.jsonl")) {
    if (one.name == name) return one.values;
  }
  return {};
}

/// The largest relative difference of the losses of two runs.
inline double distance(const Path& one, const Path& other) {
  const std::vector<double> a = series(one, "loss"), b = series(other, "loss");
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double maximum = 0;
  for (size_t i = 0; i < a.size(); ++i) maximum = std::max(maximum, std::abs(a[i] - b[i]) / b[i]);
  return maximum;
}

inline int64_t count_of(const std::string& what, const std::string& in) {
  int64_t count = 0;
  for (size_t at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) ++count;
  return count;
}

inline std::string weights(const Path& run, int64_t step) {
  return io::read(checkpoint_folder(run, step) / "model.safetensors");
}

}  // namespace heed
