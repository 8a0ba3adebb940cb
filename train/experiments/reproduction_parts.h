// Internal: shared by the parts of a reproduction.
#pragma once

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/structure/head_structure.h"
#include "heed/core/io/json.h"
#include "heed/core/io/table_text.h"
#include "heed/train/experiments/reproduction.h"
#include "heed/train/experiments/run_curve.h"
#include "heed/train/experiments/subprocess.h"

namespace heed {

/// Facts in the header of a curve, by their names.
using Facts = std::map<std::string, std::string>;

/// A run of another call or machine, as its curve on file has it.
struct FiledRun {
  ComparedRun run;  ///< without a folder
  Facts facts;      ///< in the header of its curve
};

/// Reads the run behind a curve on file; without scores where it had none yet. Fault::data that names the
/// file, the line and the value where the curve, or a fact with numbers, is not as it was written.
FiledRun read_filed_run(const Path& path, const std::string& label, int64_t seed);

/// One cell in progress.
struct PlannedCell {
  const PublishedRow* row;          ///< row of the published table
  const PublishedColumn* column;    ///< column of the published table
  size_t column_index;              ///< index of `column`, for PublishedRow::values
  bool asked = false;               ///< named in ReproductionOptions::rows, or needed by a row that is
  bool has_data = false;            ///< the column's data is found, or it needs none
  std::string position{};           ///< index among the cells that run: "3 of 35"
  std::vector<PlannedRun> plans{};  ///< one run for each seed
  Cell cell;                        ///< what is known of it before its runs
  /// Runs of other calls and machines, whose curves with scores lie in results_folder(), by ascending seeds:
  /// those with the settings and the data of this cell.
  std::vector<FiledRun> filed{};
  /// Runs on file without scores yet, of seeds that are not planned here.
  std::vector<FiledRun> begun{};
  HeadStructure structure{};  ///< what the cell's maps are compared with, for Measure::map_distance
  Json measured{};            ///< statistics of the cell, for Measure::swapped; null: none yet

  /// A cell of a table of which nothing is known yet.
  static PlannedCell of(const PublishedTable& table, const PublishedRow& row, size_t column_index);
};

/// The cells that are wanted; a usage error for a pattern that names none.
std::vector<PlannedCell> wanted_cells(const PublishedTable& table, const ReproductionOptions& options);
/// Sets a cell's remark and exit code instead of a value.
void mark_failed(PlannedCell& planned, const Error& why);
/// True if a cell has data, and an attention that this program can run.
bool runs(const PlannedCell& planned);
/// A fact of a manifest, of a session or of a curve's header as text; empty where it is not there.
std::string fact_of(const Json& json, const char* name);
/// The fact of this name in the header of a curve; empty where it is not there.
std::string fact_of(const Facts& facts, const std::string& name);

/// The settings of a cell that needs training.
Config config_of(const PlannedCell& planned, const ReproductionOptions& options, int64_t seed);
/// The settings of a cell's recipe, with those that are the row's own.
Config recipe_of(const PlannedCell& planned);
/// The settings of a cell that neither recipe nor row have: "train.max_steps 100 (recipe: 50000)", or "(row:
/// 500)" where the row has its own. Not the data.
std::string deviations_of(const PlannedCell& planned, Config& config);
/// The validation score whose curve is drawn where it is logged: "accuracy"; else the loss is.
std::string curve_score(const PublishedTable& table);
/// The file that a column's runs read: that of --data, else its own; empty: the preset's.
std::string data_of(const PublishedColumn& column, const ReproductionOptions& options);
/// A number with commas: 50,000.
std::string grouped(int64_t number);
/// The runs of a cell that have scores or have failed, by the names of their plans.
using EndedRuns = std::map<std::string, ComparedRun>;
/// The run of a plan where it has ended with scores; null otherwise.
const ComparedRun* finished_run(const EndedRuns& ended, const PlannedRun& plan);
/// A cell with the values of its runs; `first` is the first run of the table's first row in its column.
Cell judged(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
            const EndedRuns& ended, const ComparedRun* first);

/// Sets the verdict of a cell that has a value, and its remark where it has none yet.
void set_verdict(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
                 Cell& cell);

/// The machine options of this call as part of a file's name: "-threads-2"; empty: none. Measurements with
/// different options are kept in different files.
std::string machine_word(const ReproductionOptions& options);
/// Runs this program as a subprocess to its end, with the machine options of the call. Throws Stopped on a
/// signal and when the budget is spent, and what the subprocess failed with as an Error.
ChildEnd run_heed(std::vector<std::string> arguments, const ReproductionOptions& options,
                  const TimeBudget& budget);
/// The number under the first of these keys that a subprocess's JSON has; runs it once and keeps what it
/// printed in `file`. Throws as run_heed(), and Fault::data where the file has none.
double measured_number(const Path& file, const std::vector<std::string>& keys,
                       const std::vector<std::string>& arguments, const ReproductionOptions& options);
/// Calls read(), and adds `advice` to the text of its errors.
template <class Read>
auto with_advice(const std::string& advice, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.fault(), text(error.what(), " ", advice));
  }
}
/// Calls read(), which reads what an earlier call has measured; its errors say that it can be measured again.
template <class Read>
auto with_remeasuring(const Path& file, const Read& read) {
  return with_advice(text("Remove ", file, ": the next call measures it again."), read);
}
/// Calls measure(planned) for each cell that can run, one after the other. A cell whose measurement fails has
/// the reason as its remark.
template <class Measurement>
void measure_each(std::vector<PlannedCell>& all, const Measurement& measure) {
  for (PlannedCell& planned : all) {
    if (!runs(planned)) continue;
    try {
      measure(planned);
    } catch (const Error& error) {
      mark_failed(planned, error);
    }
  }
}

/// Trains and judges the cells; `result` gets them.
void train_cells(const PublishedTable& table, const ReproductionOptions& options,
                 std::vector<PlannedCell>& all, Reproduction& result);
/// Measures cells that need no training: steps per second.
void time_cells(const PublishedTable& table, const ReproductionOptions& options,
                std::vector<PlannedCell>& all);
/// Measures the cells of Measure::crossover: lengths from which attention is faster than softmax.
void cross_cells(const PublishedTable& table, const ReproductionOptions& options,
                 std::vector<PlannedCell>& all);

/// Measures the cells of Measure::map_distance: how near maps are to structured matrices, by the search of
/// the thesis and exactly.
void distance_cells(const PublishedTable& table, const ReproductionOptions& options,
                    std::vector<PlannedCell>& all);
/// Measures the cells of Measure::swapped: statistics of the run of the options under each cell's attention.
void swap_cells(const PublishedTable& table, const ReproductionOptions& options,
                std::vector<PlannedCell>& all);

/// The folder of `heed bench attention` for a cell, which measures it with and without a causal mask.
Path lengths_folder(const PlannedCell& planned, const ReproductionOptions& options);
/// The longest sequence that a row is timed at with heads of this width: twice the longest published
/// crossover, so that this lies between two measured lengths, and at least 2048.
int64_t longest_length(const PublishedTable& table, const PublishedRow& row, int64_t head_dim);

/// A text as part of a file's name: letters, digits, '_' and '-'.
std::string file_word(const std::string& words);
/// Words as lines of a Markdown page; those after the first begin with `indent`.
inline std::string wrapped(const std::string& words, const std::string& indent) {
  return folded(words, 120, indent);
}
/// The facts that must agree where two runs stand in one cell: recipe, attention, changed settings and data.
Facts setting_facts(const ReproductionOptions& options, const PlannedCell& planned);
/// What differs between the settings and data of a curve on file and those of a run: "changed: on file
/// train.max_steps 6 (recipe: 50000), here nothing"; empty where they agree.
std::string different_facts(const Facts& filed, const Facts& own);
/// Words as text of a Markdown page, whatever they hold: marks of Markdown and HTML are escaped, control
/// characters and line breaks made visible.
std::string markdown_escaped(std::string_view words);
/// The facts in the header of a curve.
std::vector<std::pair<std::string, std::string>> curve_facts(const PublishedTable& table,
                                                             const ReproductionOptions& options,
                                                             const PlannedCell& planned,
                                                             const PlannedRun& plan);
/// Writes the curve of a run as TABLE-ROW-COLUMN-sSEED.csv, as far as the run has come, and with its scores
/// where it has `ended`. Writes nothing where the run has no metrics yet, and where keeps_curve_on_file().
void write_curve(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
                 const PlannedRun& plan, const ComparedRun* ended);
/// What a curve's header says of data that --data named.
inline constexpr const char* given_data = "the files of --data";
/// The facts of a curve's header that say what a finished run has scored.
std::vector<std::pair<std::string, std::string>> score_facts(const ComparedRun& run);
/// True if the curve on file must stay where a run with the facts `own` has come to `step`, with scores if it
/// is `scored`. A finished run on file gives way only to a finished run of the same settings and data; an
/// unfinished one to any finished run, and to an unfinished run of the same settings and data that has come
/// at least as far. Fault::data for a file that cannot be read.
bool keeps_curve_on_file(const Path& file, const Facts& own, int64_t step, bool scored);
/// The different_facts() of the curve on file and `own`; empty without a file.
std::string differences_on_file(const Path& file, const Facts& own);
/// Sets PlannedCell::filed of all cells from results_folder(), and adds to them the cells of the table that
/// have such runs but are not among them. Skips seeds whose runs have ended here with scores, and leaves out
/// runs of other settings or data than the cell's, which its note names. Fault::data for a file that cannot
/// be read.
void add_filed_runs(const PublishedTable& table, const ReproductionOptions& options, const EndedRuns& ended,
                    std::vector<PlannedCell>& all);
/// True if the run of this seed that counts in the cell is one on file.
bool is_filed(const PlannedCell& planned, int64_t seed);
/// Where the curve of a run goes.
Path curve_file(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
                int64_t seed);
/// What the parts of a table's page read.
struct PageInput {
  const PublishedTable& table;          ///< table that is reproduced
  const ReproductionOptions& options;   ///< options of this call
  const std::vector<PlannedCell>& all;  ///< cells with runs here or on file
  const EndedRuns& ended;               ///< runs of this call

  /// The cells of a column.
  std::vector<const PlannedCell*> in_column(const PublishedColumn& column) const;
  /// The runs of a cell that have ended in this call with scores.
  std::vector<const ComparedRun*> finished(const PlannedCell& planned) const;
  /// The name TABLE-WORD of a file of this table.
  std::string file_name(const std::string& words, const std::string& ending) const;
  /// Writes a picture as TABLE-WORD and `ending` into results_folder(); returns the line that shows it.
  std::string put_picture(const std::string& words, const std::string& ending, const std::string& title,
                          const std::string& svg) const;
};

/// Program, commit, machine and date of a table's runs.
struct Origins {
  std::string shared;                      ///< lines of the page: those of which all runs have the same
  std::map<std::string, std::string> own;  ///< the others, by the name of the cell
};
/// The origins of all runs that have begun here and of those on file.
Origins origins_of(const PageInput& input);

/// Writes TABLE.md and its pictures.
void write_page(const PageInput& input, const Reproduction& result);

// Parts of the page: each draws its pictures and returns the lines that show them.

/// Accuracy over speed, with memory as area: a picture for each column with a run, and one for the means over
/// all columns.
std::string draw_bubbles(const PageInput& input);
/// The maps of all finished models of each column side by side.
std::string draw_maps(const PageInput& input);
/// BLEU by the length of the source: a table, a picture and a CSV for each column with a finished run.
std::string draw_by_length(const PageInput& input);
/// The cross-attention of each finished model while it translates the column's sentence: of the sharpest head
/// of its first run.
std::string draw_alignments(const PageInput& input);
/// The time of a forward pass over the length, from what cross_cells() has measured.
std::string draw_lengths(const PageInput& input);
/// What distance_cells() has found, as CSV and pictures.
std::string draw_distances(const PageInput& input);
/// The scores of a column over the width of its rows' windows, those of other attentions as levels. Nothing
/// for a column with fewer than two windows.
std::string draw_widths(const PageInput& input);
/// Tables and curves of what swap_cells() has measured over E, and the paper's equations checked.
std::string draw_swaps(const PageInput& input);

}  // namespace heed
