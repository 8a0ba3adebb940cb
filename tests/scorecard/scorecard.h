// What a row of the scorecard is, and what it is given.
//
// To add a row: write `Result NAME(const Scene& scene)` in a file of tests/scorecard (a file may hold a
// family), declare it in rows.h, and add its line to rows.cpp. CMake reads that list for the ctest cases:
// nothing else is needed. A row looks at the program from outside only (outside.h starts and watches
// processes, tiny_runs.h has runs of a second), takes its amounts from `scene.amount(short, long)`, and says
// what it reached in numbers.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/scorecard/outside.h"

namespace heed::scorecard {

enum class Verdict { ok, miss, skip };

/// What a row found.
struct Result {
  Verdict verdict = Verdict::ok;
  std::string reached;               ///< the numbers, or why it is skipped
  std::vector<std::string> notes{};  ///< what went wrong, one line each; printed below the row
};

/// Everything a row may use.
struct Scene {
  Path program;        ///< heed
  Path build;          ///< the build folder it is of
  Path source;         ///< root of the sources
  const Room& room;    ///< an empty folder for this row
  bool whole = false;  ///< the long form
  double hours = 0;    ///< --hours, for the soak; 0: by steps
  uint64_t seed = 1;   ///< of random moments
  /// How often: in `./heed test`, and in the long form.
  int64_t amount(int64_t brief, int64_t full) const { return whole ? full : brief; }
  /// The program with these words after its name, started in the room.
  Command heed(std::vector<std::string> words) const;
};

/// One line of the table.
struct Row {
  const char* id;
  const char* measure;
  const char* hold;
  Result (*run)(const Scene&);
};

/// All rows, in the order of the table.
std::span<const Row> rows();

Result skip(std::string why);

/// Counts cases of which each must hold, and keeps the first complaints.
class Tally {
 public:
  /// Counts one case; `complaint` says what is wrong with it, empty for nothing.
  void add(const std::string& what, const std::string& complaint);
  void fault(std::string what);  ///< a fault that is no case
  int64_t cases() const { return cases_; }
  int64_t good() const { return good_; }
  /// "198/200" + what follows; a miss when a case or anything else failed, or there was no case.
  Result result(const std::string& behind) const;

 private:
  int64_t cases_ = 0, good_ = 0, faults_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace heed::scorecard
