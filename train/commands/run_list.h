// The runs of a folder, for `heed list runs`: found, read, sorted, and as text or JSON.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "heed/core/io/json.h"

namespace heed {

/// One line of a list of runs.
struct ListedRun {
  Path path;                         ///< path of the run folder, as other commands take it
  std::string problem = {};          ///< why the run cannot be read; empty where it can
  std::string task = {};             ///< "translate"
  std::string attention = {};        ///< attentions: "linear", "linear / softmax, cross additive"
  std::string score_name = {};       ///< "bleu"; empty where there is no score yet
  double score = NAN;                ///< score of the best checkpoint
  bool lower_is_better = true;       ///< whether a lower score is better
  bool on_test = false;              ///< whether the score is of the test data; else of the validation data
  int64_t step = 0;                  ///< step that training has reached
  int64_t steps = 0;                 ///< step that training is to reach; 0: unknown
  std::string started = {};          ///< "2026-11-26T19:50:31Z"
  std::string state = "unreadable";  ///< new, running, stopped, done, imported, saved (by fit()), or lost:
                                     ///< its checkpoints are gone
};

/// The runs in a folder of runs and in the folders below it, such as those of heed compare; sorted by path. A
/// run that cannot be read is listed with its problem. A link to a run is a run; other links are not
/// followed.
std::vector<ListedRun> list_of_runs(const Path& folder);

/// Sorts runs by "name", "date" (the newest first) or "score" (the best first, runs of one task together). A
/// usage error for another word.
void sort_runs(std::vector<ListedRun>& runs, const std::string& by);

/// A table that fits the terminal, in which long names have a line of their own; with `wide` one line a run
/// and the time of day too. Ends with what could not be read.
std::string runs_text(const std::vector<ListedRun>& runs, bool wide);

/// The runs as a JSON list of objects.
Json runs_json(const std::vector<ListedRun>& runs);

}  // namespace heed
