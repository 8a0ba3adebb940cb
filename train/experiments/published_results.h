// Published results: tables of papers, with their sources (train/experiments/published_results.json).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/train/experiments/setting_grid.h"

namespace heed {

/// The unit of a table's values, and its tolerance: when our value counts as reproduced.
enum class Measure {
  accuracy,          ///< percent of the test split; tolerance in points
  loss,              ///< nats on the validation split; tolerance in nats
  bleu,              ///< BLEU of the test split, 0 to 100; tolerance in points
  crossover,         ///< a sequence length, lower is better; tolerance is a fraction of the paper's
  map_distance,      ///< sum of absolute differences of maps, lower is better; tolerance as for crossover
  steps_per_second,  ///< speed relative to the first row; tolerance is a fraction of the paper's
  sooner,            ///< speedup until the first row's last training loss is reached
  score_gradient,    ///< largest derivative by a score over the bound that the paper prints; not judged
  swapped            ///< a statistic of a trained model under other attentions, lower is better; not judged
};

/// Properties of a measure.
struct MeasureTraits {
  const char* name;                   ///< name in published_results.json
  bool trains = false;                ///< whether cells are trained; others measure machine, maps or a run
  bool lower_is_better = false;       ///< whether a lower value is better
  bool is_relative = false;           ///< whether the tolerance is a fraction of the paper's value
  const char* tolerance_unit = "";    ///< unit of a tolerance that is not relative: " points"
  const char* tolerance_of_one = "";  ///< unit of a tolerance of 1: " point"
  const char* unit;                   ///< description of the values; FIRST: name of the table's first row
};
/// The traits of a measure.
const MeasureTraits& traits_of(Measure measure);

/// Whether a table of this measure trains models.
inline bool trains(Measure measure) { return traits_of(measure).trains; }

/// One task of a table.
struct PublishedColumn {
  std::string name;           ///< as the paper calls it
  std::string preset;         ///< preset of our runs; empty for a measure without training
  int64_t head_dim = 0;       ///< head width of a crossover, which has no preset
  bool causal = false;        ///< whether a crossover is measured with a causal mask
  std::string real_data;      ///< description of the paper's data, to be given by --data
  std::string note{};         ///< explains the paper's value where necessary
  std::string sentence{};     ///< sentence whose cross-attention maps are drawn; empty: none
  std::string data{};         ///< file for find_data(), unless --data names another; empty: none
  int64_t width = 0;          ///< w of bands and bars, for map distances
  int64_t num_pos = 0;        ///< number of bars, for map distances
  int64_t tokens = 0;         ///< tokens of random inputs, for score gradients; 0: trained runs
  double exponent = 0;        ///< E of a tree with l^E buds
  bool encoder_only = false;  ///< whether rows replace only the encoder's self-attention
  std::vector<std::pair<std::string, std::string>> settings{};  ///< changes to the preset
};

/// One model of a table.
struct PublishedRow {
  std::string name;            ///< the model, as the paper calls it
  std::string attention;       ///< spec; "none": a model without attention; empty: not run
  std::vector<double> values;  ///< one per column; NaN: none published
  std::string note;            ///< difference from the paper; may be empty
  std::map<std::string, std::string> attention_in{};  ///< attention by column, where it is not `attention`
  std::vector<std::pair<std::string, std::string>> settings{};  ///< changes to the preset and the column
  double tolerance = 0;                                         ///< tolerance of the row; 0: the table's
  std::string from{};  ///< earlier row whose trained weights its runs begin from; empty: none

  /// The attention of this model on a task.
  const std::string& attention_on(const PublishedColumn& column) const;
};

/// A table of a paper.
struct PublishedTable {
  std::string name;                     ///< for `heed reproduce`
  std::string about;                    ///< one line
  std::string source;                   ///< authors, year, table, arXiv number
  Measure measure = Measure::accuracy;  ///< unit of the values and of the tolerance
  double tolerance = 0;                 ///< see Measure
  std::string metric{};                 ///< validation metric to compare with; empty: the score itself
  std::string runs_of{};                ///< table with the same runs; empty: this one
  bool bubbles = false;                 ///< whether the page draws accuracy over speed, with memory as area
  bool maps = false;                    ///< whether it draws the trained models' maps side by side
  bool widths = false;   ///< whether it draws score and loss over the width of the rows' windows
  bool lengths = false;  ///< whether it draws BLEU over the length of the source
  bool states = false;   ///< whether it draws the score over the numbers that a model keeps while it decodes
  std::string grid{};  ///< settings of which each cell has the best by validation; empty: those of the recipe
  std::vector<GridPoint> points = std::vector<GridPoint>(1);  ///< those of `grid`; one empty point without it
  std::string no_verdict{};              ///< why our values are not judged by the paper's; empty: they are
  std::vector<PublishedColumn> columns;  ///< tasks
  std::vector<PublishedRow> rows;        ///< models
};

/// Description of a table's values: "accuracies of the test split in percent".
std::string unit_text(const PublishedTable& table);

/// The tables of a text in the form of published_results.json, in order. Fault::internal for what it must not
/// hold: an unknown measure, too few values, a grid that cannot be tried.
std::vector<PublishedTable> parse_published(std::string_view json);
/// All tables, in the order of the file.
const std::vector<PublishedTable>& published();
/// The table of a name. A usage error with the nearest name and the list when there is none.
const PublishedTable& published_table(const std::string& name);

/// Why this program cannot run an attention: its name or one of its options is unknown. Empty for a known
/// one, and for "none", the spec of models without attention.
std::string why_unknown(const std::string& spec);

/// The comparison of our value with the paper's.
enum class Verdict { reproduced, better, below, unknown };
/// The verdict on our value: reproduced if it differs from the paper's by at most the tolerance or our
/// value's `error`, whichever is larger. `tolerance` is the row's; 0: the table's. Unknown without a
/// published value, and for a table with `no_verdict`.
Verdict verdict_on(const PublishedTable& table, double paper, double ours, double error,
                   double tolerance = 0);
/// Two standard errors of an accuracy in percent over a number of test examples (binomial): 200 *
/// sqrt(p * (1 - p) / examples); 0 where the number is not known.
double two_standard_errors(double percent, int64_t examples);
/// The verdict as a word.
const char* to_string(Verdict verdict);

}  // namespace heed
