// What the attention heads of a trained model do over a test set: measures, roles, distances, examples.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heed/attention/inspect/head_distances.h"
#include "heed/attention/inspect/head_roles.h"
#include "heed/core/io/json.h"
#include "heed/data/synthetic/phrasebook/word_alignment.h"
#include "heed/train/inspect/map_source.h"

namespace heed {

/// An example in which the measure of a head's role is high, with the map of that head.
struct HeadExample {
  int64_t number = 0;   ///< as MappedExample::number
  std::string caption;  ///< as MappedExample::caption
  double score = 0;     ///< the measure by which it was chosen
  MapView map;          ///< map of this head alone, in at most 48 tiles a side
};

/// One head of a model.
struct HeadEntry {
  std::string name;               ///< "cross.0.3": kind, layer, head
  std::string module;             ///< the dotted name of its attention
  std::string kind;               ///< as MapView::kind
  int64_t layer = 0;              ///< from 0
  int64_t head = 0;               ///< from 0
  HeadSums sums;                  ///< over all examples
  RoleEvidence evidence;          ///< on repeated sequences, and against a word alignment
  std::vector<HeadRole> roles;    ///< what it does
  std::string chosen_by;          ///< the measure by which the examples were chosen
  std::vector<HeadExample> best;  ///< those with the highest score, the highest first
  /// Agreement with the word alignment by kind of word, and of adjectives that change places with their noun.
  std::map<std::string, AlignmentAgreement> links;
};

/// The heads of a model over a test set.
struct HeadReport {
  int64_t examples = 0;                      ///< looked at
  std::vector<HeadEntry> heads;              ///< in the order of the forward pass
  std::vector<HeadDistances::Group> groups;  ///< distances of heads of one kind
  double seconds = 0;                        ///< that it took
};

/// What to look at.
struct HeadReportOptions {
  MapSourceOptions source = {};  ///< which examples
  MappedLines lines = {};        ///< inputs in place of test examples
  bool phrasebook = false;       ///< compare cross-attention with the phrasebook's word alignment
  int64_t best = 3;              ///< examples kept for each head
  int64_t ranked = 256;          ///< effective ranks are means over so many examples
};

/// Looks at the heads of a model that evaluates; counts its work for a WorkScope.
HeadReport head_report(const Task& task, Module& model, const HeadReportOptions& options);

/// Repetition scores of all heads of a language model, by map and head: means over `sequences` sequences of
/// `period` random tokens that come twice. Empty for other models.
std::vector<std::vector<RepeatScores>> repeat_scores_of_model(Module& model, int64_t period,
                                                              int64_t sequences, uint64_t seed);

/// The report as JSON: every measure of every head, roles with their evidence, distances.
Json head_report_json(const HeadReport& report);
/// The report as a table for terminals.
std::string head_report_text(const HeadReport& report);
/// The report as a page that works offline: a table to sort, the clustered distances, the examples.
std::string head_report_page(const HeadReport& report, const std::string& title, const std::string& subtitle);
/// The clustered distances as an SVG file: one square a kind, darker where heads differ more.
std::string head_distances_svg(const HeadReport& report);

}  // namespace heed
