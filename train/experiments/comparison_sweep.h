// A comparison over a grid of settings: the best point of each attention by validation, and curves over
// settings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/train/experiments/comparison.h"

namespace heed {

/// A point of the grid as one attention was trained with it.
struct SweptPoint {
  std::string label;       ///< label of its runs
  GridPoint point;         ///< their settings of the grid
  Spread valid{};          ///< Comparison::selection of the scored checkpoints
  Spread score{};          ///< Comparison::score, on the test split
  std::string failure{};   ///< failure of its first failed run; empty: none failed
  bool is_chosen = false;  ///< whether it is the best point of its label
};

/// The points of all labels, in the order of the runs.
std::vector<SweptPoint> swept_points(const Comparison& comparison);

/// Marks the runs of each label's best point as chosen: the one with the best mean validation score of those
/// whose runs all have one, at a tie the one with the lower validation loss. Where a label has none, its
/// first point is chosen. Returns the name of the validation score. Fault::data where runs have scores, but
/// none on validation data.
std::string choose_points(std::vector<ComparedRun>& runs);

/// For each setting of the grid with two or more numbers: the validation score over it, one line per label,
/// each point with the best of the other settings; with a file name.
std::vector<std::pair<std::string, Chart>> sweep_charts(const Comparison& comparison);

/// Lines for the notes: how settings were chosen, and which best ones lie at an edge of the grid.
std::vector<std::string> sweep_notes(const Comparison& comparison);

}  // namespace heed
