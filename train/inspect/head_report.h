// A report on the attention heads of a trained model over a test set: measures, roles, distances, examples.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heed/attention/inspect/head_distances.h"
#include "heed/attention/inspect/head_roles.h"
#include "heed/core/io/json.h"
#include "heed/data/synthetic/phrasebook/word_alignment.h"
#include "heed/train/inspect/map_source.h"

namespace heed {

/// A test example in which the measure of a head's role is high, with the map of that head.
struct HeadExample {
  int64_t number = 0;   ///< MappedExample::number
  std::string caption;  ///< MappedExample::caption
  double score = 0;     ///< value of the measure by which the example was chosen
  MapView map;          ///< map of this head alone, pooled to at most 48 tiles a side
};

/// One head of a model.
struct HeadEntry {
  std::string name;               ///< "cross.0.3": kind, layer, head
  std::string module;             ///< the dotted name of its attention
  std::string kind;               ///< MapView::kind
  int64_t layer = 0;              ///< number of the layer, from 0
  int64_t head = 0;               ///< number of the head in its layer, from 0
  HeadSums sums;                  ///< sums of its measures over all examples
  RoleEvidence evidence;          ///< its scores on repeated sequences and against a word alignment
  std::vector<HeadRole> roles;    ///< its roles
  std::string chosen_by;          ///< the measure by which the examples were chosen
  std::vector<HeadExample> best;  ///< examples with the highest scores, the highest first
  /// Agreement with the word alignment by kind of word, and for adjectives that swap places with their noun.
  std::map<std::string, AlignmentAgreement> links;
};

/// The heads of a model over a test set.
struct HeadReport {
  int64_t examples = 0;                      ///< number of examples analysed
  std::vector<HeadEntry> heads;              ///< all heads, in the order of the forward pass
  std::vector<HeadDistances::Group> groups;  ///< distances between the heads of each kind
  double seconds = 0;                        ///< duration of the analysis
};

/// Settings of a head report.
struct HeadReportOptions {
  MapSourceOptions source = {};  ///< choice of the test examples
  MappedLines lines = {};        ///< inputs in place of test examples; empty: test examples
  bool phrasebook = false;       ///< whether cross-attention is compared with the phrasebook's word alignment
  int64_t best = 3;              ///< number of examples kept for each head
  int64_t ranked = 256;          ///< number of first examples over which effective ranks are averaged
};

/// Analyses the heads of a model. A WorkScope shows the progress (core/counted_work.h).
HeadReport head_report(const Task& task, Module& model, const HeadReportOptions& options);

/// Repetition scores of all heads of a language model, [maps][heads]: means over `sequences` sequences, each
/// of `period` random tokens that are repeated once. Empty for other models.
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
