// The rows of the scorecard and their input.
// To add a row: write `Result NAME(const Scene& scene)` in a file of tests/scorecard (a file may hold a
// family), declare it in rows.h, and add its line to rows.cpp. CMake reads that list for the ctest cases:
// nothing else is needed. A row uses the program from outside only (outside.h starts and watches processes,
// tiny_runs.h has runs of a second), takes its amounts from `scene.amount(short, long)`, and reports numbers.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "heed/tests/scorecard/child_processes.h"

namespace heed::scorecard {

enum class Verdict { ok, miss, skip };

/// The result of a row.
struct Result {
  Verdict verdict = Verdict::ok;
  std::string reached;               ///< the numbers, or why it was skipped
  std::vector<std::string> notes{};  ///< failures, one line each; printed below the row
};

/// The input of a row.
struct Scene {
  Path program;        ///< heed
  Path build;          ///< its build folder
  Path source;         ///< root of the sources
  const Room& room;    ///< an empty folder of this row
  bool whole = false;  ///< the long form
  double hours = 0;    ///< --hours, for the soak; 0: by steps
  uint64_t seed = 1;   ///< seed of random times
  /// A count: `brief` in `./heed test`, `full` in the long form.
  int64_t amount(int64_t brief, int64_t full) const { return whole ? full : brief; }
  /// The program with these arguments, started in the row's folder.
  Command heed(std::vector<std::string> words) const;
  /// heed with a fault planted into its training, a test program of the same build
  /// (tests/faults/heed_with_faults.cpp); it may not be there.
  Path program_with_faults() const { return build / "tests/heed_with_faults"; }
  Command heed_with_fault(const std::string& fault, std::vector<std::string> words) const;
};

/// How long the short form of a row takes on two cores; minutes: more than ten seconds.
enum class Takes : uint8_t { seconds, minutes };

/// A line of the table.
struct Row {
  const char* id;
  const char* measure;
  const char* hold;
  Result (*run)(const Scene&);
  Takes takes = Takes::seconds;
};

/// All rows, in the order of the table.
std::span<const Row> rows();

Result skip(std::string why);

/// Counts cases that must hold, and keeps the first failures.
class Tally {
 public:
  /// Counts one case; `complaint` is its failure, empty for none.
  void add(const std::string& what, const std::string& complaint);
  void fault(std::string what);  ///< a failure that is no case
  int64_t cases() const { return cases_; }
  int64_t good() const { return good_; }
  /// "198/200" + `behind`; a miss when a case or anything else failed, or there was no case.
  Result result(const std::string& behind) const;

 private:
  int64_t cases_ = 0, good_ = 0, faults_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace heed::scorecard
