// Published results: tables of papers, with their sources (train/experiments/published_results.json).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

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
  swapped            ///< a statistic of a trained model under other attentions, lower is better; not judged
};

/// What is known of a measure.
struct MeasureTraits {
  const char* name;              ///< name in published_results.json
  bool trains;                   ///< its tables train models; others measure this machine or what is there
  bool lower_is_better;          ///< whether a lower value is better
  bool is_relative;              ///< its tolerance is a fraction of the paper's value
  const char* tolerance_unit;    ///< unit of a tolerance that is not relative: " points"
  const char* tolerance_of_one;  ///< the unit of a tolerance of 1: " point"
  const char* unit;              ///< what the values are; FIRST stands for the name of the table's first row
};
/// The traits of a measure.
const MeasureTraits& traits_of(Measure measure);

/// Whether a table of this measure trains models.
inline bool trains(Measure measure) { return traits_of(measure).trains; }

/// One task of a table.
struct PublishedColumn {
  std::string name;        ///< as the paper calls it
  std::string preset;      ///< preset of our runs; empty for a measure that needs none
  int64_t head_dim = 0;    ///< head width of a crossover, which has no preset
  bool causal = false;     ///< whether a crossover is measured with a causal mask
  std::string real_data;   ///< the --data that the paper's values are for, or that it cannot do without
  std::string note{};      ///< explains the paper's value where necessary
  std::string sentence{};  ///< draws the cross-attention of each model while it translates this; empty: none
  std::string data{};      ///< the file that is read unless --data says another, by find_data(); empty: none
  int64_t width = 0;       ///< w of bands and bars, for map distances
  int64_t num_pos = 0;     ///< number of bars, for map distances
  double exponent = 0;     ///< E of a tree with l^E buds
  bool encoder_only = false;  ///< rows replace the self-attention of the encoder alone
};

/// One model of a table.
struct PublishedRow {
  std::string name;                                             ///< the model, as the paper calls it
  std::string attention;                                        ///< "none": a model without; empty: not run
  std::vector<double> values;                                   ///< one per column; NaN: none
  std::string note;                                             ///< what differs from the paper; may be empty
  std::map<std::string, std::string> attention_in{};            ///< by column, where it is not `attention`
  std::vector<std::pair<std::string, std::string>> settings{};  ///< settings besides the attention
  double tolerance = 0;                                         ///< instead of the table's; 0: the table's
  std::string from{};  ///< the row above whose trained weights its runs begin from; empty: none

  /// The attention of this model on a task.
  const std::string& attention_on(const PublishedColumn& column) const;
};

/// A table of a paper.
struct PublishedTable {
  std::string name;                      ///< for `heed reproduce`
  std::string about;                     ///< one line
  std::string source;                    ///< authors, year, table, arXiv number
  Measure measure = Measure::accuracy;   ///< unit of the values, and what the tolerance means
  double tolerance = 0;                  ///< see Measure
  std::string metric{};                  ///< validation metric to compare with; empty: the score itself
  std::string runs_of{};                 ///< the table whose runs these are too; empty: its own
  bool bubbles = false;                  ///< draws accuracy over speed, with memory as area
  bool maps = false;                     ///< draws the attention maps of the trained models side by side
  bool widths = false;                   ///< draws score and loss over the width of the rows' windows
  bool lengths = false;                  ///< draws BLEU over the length of the source, with a table of it
  std::vector<PublishedColumn> columns;  ///< tasks
  std::vector<PublishedRow> rows;        ///< models
};

/// What the values of a table are: "accuracies of the test split in percent".
std::string unit_text(const PublishedTable& table);

/// All tables, in the order of the file.
const std::vector<PublishedTable>& published();
/// The table of a name. A usage error with the nearest name and the list when there is none.
const PublishedTable& published_table(const std::string& name);

/// Why this program cannot run an attention: it has none of this name, or not this option. Empty where it
/// can, and for "none", of models without attention.
std::string why_unknown(const std::string& spec);

/// The comparison of our value with the paper's.
enum class Verdict { reproduced, better, below, unknown };
/// The verdict on a value, which is as good as the paper's within the larger of the table's tolerance and
/// `error`: that of the seeds and of a test set of so many examples. `tolerance` is a row's own; 0: the
/// table's. Unknown where the paper has no value.
Verdict verdict_on(const PublishedTable& table, double paper, double ours, double error,
                   double tolerance = 0);
/// Two standard errors of an accuracy in percent that was scored on so many examples (binomial); 0 where
/// their number is not known.
double two_standard_errors(double percent, int64_t examples);
/// The verdict as a word.
const char* to_string(Verdict verdict);

}  // namespace heed
