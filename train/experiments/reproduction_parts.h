// Internal: shared by the parts of a reproduction.
#pragma once

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/structure/head_structure.h"
#include "heed/core/io/json.h"
#include "heed/train/experiments/reproduction.h"
#include "heed/train/experiments/run_curve.h"

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
struct Work {
  const PublishedRow* row;        ///< of the published table
  const PublishedColumn* column;  ///< of the published table
  size_t column_index;            ///< index of `column`, for PublishedRow::values
  bool asked;                     ///< named in ReproductionOptions::rows, or needed by a row that is
  bool has_data;                  ///< the column's data is found, or it needs none
  std::string place;              ///< index among the cells that run: "3 of 35"
  std::vector<PlannedRun> plans;  ///< one run for each seed
  Cell cell;                      ///< what is known of it before its runs
  /// Runs of other calls and machines, whose curves with scores lie in results_folder(), by ascending seeds:
  /// those with the settings and the data of this cell.
  std::vector<FiledRun> filed{};
  /// The same of runs without scores yet, but for seeds that are planned here.
  std::vector<FiledRun> begun{};
  HeadStructure structure{};  ///< of Measure::map_distance: what the cell's maps are compared with
  Path measured{};            ///< of Measure::swapped: the file with its statistics; empty: none yet
};

/// The cells that are wanted; a usage error for a pattern that names none.
std::vector<Work> wanted_cells(const PublishedTable& table, const ReproductionOptions& options);
/// Sets a cell's remark and exit code instead of a value.
void give_up(Work& work, const Error& why);
/// True if a cell has data, and an attention that this program can run.
bool runs(const Work& work);

/// The settings of a cell that needs training.
Config config_of(const Work& work, const ReproductionOptions& options, int64_t seed);
/// The settings of a cell's recipe, with those that are the row's own.
Config recipe_of(const Work& work);
/// The settings of a cell that neither recipe nor row have: "train.max_steps 100 (recipe: 50000)", or "(row:
/// 500)" where the row has its own. Not the data.
std::string deviations_of(const Work& work, Config& config);
/// The validation score whose curve is drawn where it is logged: "accuracy"; else the loss is.
std::string curve_score(const PublishedTable& table);
/// The file that a column's runs read: that of --data, else its own; empty: the preset's.
std::string data_of(const PublishedColumn& column, const ReproductionOptions& options);
/// A number with commas: 50,000.
std::string grouped(int64_t number);
/// The runs of a cell that have scores or have failed, by the names of their plans.
using EndedRuns = std::map<std::string, ComparedRun>;
/// A cell with the values of its runs; `first` is the first run of the table's first row in its column.
Cell judged(const PublishedTable& table, const ReproductionOptions& options, const Work& work,
            const EndedRuns& ended, const ComparedRun* first);

/// Sets the verdict of a cell that has a value, and says what it is worth.
void settle(const PublishedTable& table, const ReproductionOptions& options, const Work& work, Cell& cell);

/// The machine options of this call as part of a file's name: "-threads-2"; empty: none. What was measured
/// with others is another measurement.
std::string machine_word(const ReproductionOptions& options);
/// The number under the first of these keys that a subprocess's JSON has; runs it once and keeps what it
/// printed in `file`. Throws Stopped on a signal and when the budget is spent. Fault::data where the file has
/// none.
double kept_number(const Path& file, const std::vector<std::string>& keys,
                   const std::vector<std::string>& arguments, const TimeBudget& budget);
/// Calls read(), which reads what an earlier call has measured; its errors say that it can be measured again.
template <class Read>
auto with_remeasuring(const Path& file, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    fail(error.fault(), error.what(), " Remove ", file, ": the next call measures it again.");
  }
}

/// Trains and judges the cells; `result` gets them.
void train_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all,
                 Reproduction& result);
/// Measures cells that need no training: steps per second.
void time_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all);
/// The same for Measure::crossover: lengths from which attention is faster than softmax.
void cross_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all);

/// The same for Measure::map_distance: how near maps are to structured matrices, by the search of the thesis
/// and exactly.
void distance_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all);
/// The same for Measure::swapped: statistics of the run of the options under each cell's attention.
void swap_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all);
/// Tables and curves of these statistics over E, and the paper's equations checked; the lines of the page.
std::string draw_swaps(const PublishedTable& table, const ReproductionOptions& options,
                       const std::vector<Work>& all);

/// The folder of `heed bench attention` for a cell, which measures it with and without a causal mask.
Path lengths_folder(const Work& work, const ReproductionOptions& options);
/// The longest sequence that a row is timed at with heads of this width: twice the longest published
/// crossover, so that this lies between two measured lengths, and at least 2048.
int64_t longest_length(const PublishedTable& table, const PublishedRow& row, int64_t head_dim);

/// A text as part of a file's name: letters, digits, '_' and '-'.
std::string file_word(const std::string& words);
using picture::wrapped;
/// The facts that must agree where two runs stand in one cell: recipe, attention, changed settings and data.
Facts setting_facts(const ReproductionOptions& options, const Work& work);
/// What differs between the settings and data of a curve on file and those of a run: "changed: on file
/// train.max_steps 6 (recipe: 50000), here nothing"; empty where they agree.
std::string different_facts(const Facts& filed, const Facts& own);
/// Words as text of a Markdown page, whatever they hold: marks of Markdown and HTML are escaped, control
/// characters and line breaks made visible.
std::string markdown_escaped(std::string_view words);
/// The facts in the header of a curve.
std::vector<std::pair<std::string, std::string>> curve_facts(const PublishedTable& table,
                                                             const ReproductionOptions& options,
                                                             const Work& work, const PlannedRun& plan);
/// Writes a picture into results_folder(); the line of the page that shows it.
std::string put_picture(const ReproductionOptions& options, const std::string& file, const std::string& title,
                        const std::string& svg);
/// Writes the curve of a run as TABLE-ROW-COLUMN-sSEED.csv, as far as the run has come, and with its scores
/// where it has `ended`. Nothing where it has no metrics yet. A finished run on file is replaced by none that
/// has no scores, and by none of other settings or data.
void write_curve(const PublishedTable& table, const ReproductionOptions& options, const Work& work,
                 const PlannedRun& plan, const ComparedRun* ended);
/// What a curve's header says of data that --data named.
inline constexpr const char* given_data = "the files of --data";
/// The facts of a curve's header that say what a finished run has scored.
std::vector<std::pair<std::string, std::string>> score_facts(const ComparedRun& run);
/// True if a curve on file stays in place of one of a run with the facts `own` that has come to `step`, and
/// has been `scored` or not: a finished run gives way to a finished one of the same settings and data alone,
/// an unfinished one also to one of the same that has come as far. Fault::data for a file that cannot be
/// read.
bool is_kept(const Path& file, const Facts& own, int64_t step, bool scored);
/// What settings and data of a curve on file are others, as different_facts() says it; empty where none is,
/// and where there is no file.
std::string why_kept(const Path& file, const Facts& own);
/// Sets Work::filed of all cells from results_folder(), and adds to them the cells of the table that have
/// such runs but are not among them. Skips seeds whose runs have ended here with scores, and leaves out runs
/// of other settings or data than the cell's, which its note names. Fault::data for a file that cannot be
/// read.
void add_filed_runs(const PublishedTable& table, const ReproductionOptions& options, const EndedRuns& ended,
                    std::vector<Work>& all);
/// True if the run of this seed that counts in the cell is one on file.
bool is_filed(const Work& work, int64_t seed);
/// Program, commit, machine and date of a table's runs.
struct Origins {
  std::string shared;                      ///< lines of the page: those of which all runs have the same
  std::map<std::string, std::string> own;  ///< the others, by the name of the cell
};
/// The origins of all runs that have begun here and of those on file.
Origins origins_of(const PublishedTable& table, const ReproductionOptions& options,
                   const std::vector<Work>& all);
/// Where the curve of a run goes.
Path curve_file(const PublishedTable& table, const ReproductionOptions& options, const Work& work,
                int64_t seed);
/// Writes TABLE.md and its pictures: curves of each column, and bubbles where the table has them.
void write_page(const PublishedTable& table, const ReproductionOptions& options, const std::vector<Work>& all,
                const EndedRuns& ended, const Reproduction& result);
/// Draws accuracy over speed, with memory as area: a picture for each column with a run, and one for the
/// means over all columns; the lines of the page that show them.
std::string draw_bubbles(const PublishedTable& table, const ReproductionOptions& options,
                         const std::vector<Work>& all, const EndedRuns& ended);
/// Draws the maps of all finished models of each column side by side; the lines of the page that show them.
std::string draw_maps(const PublishedTable& table, const ReproductionOptions& options,
                      const std::vector<Work>& all);
/// BLEU by the length of the source: a table, a picture and a CSV for each column with a finished run; the
/// lines of the page that show them.
std::string draw_by_length(const PublishedTable& table, const ReproductionOptions& options,
                           const std::vector<Work>& all, const EndedRuns& ended);
/// Draws the cross-attention of each finished model while it translates the column's sentence: of the
/// sharpest head of its first run; the lines of the page that show them.
std::string draw_alignments(const PublishedTable& table, const ReproductionOptions& options,
                            const std::vector<Work>& all);
/// Draws the time of a forward pass over the length, from what cross_cells() has measured; the lines of the
/// page that show it.
std::string draw_lengths(const PublishedTable& table, const ReproductionOptions& options,
                         const std::vector<Work>& all);

/// Writes what distance_cells() has found as CSV and pictures; the lines of the page that show it.
std::string draw_distances(const PublishedTable& table, const ReproductionOptions& options,
                           const std::vector<Work>& all);
/// Draws the scores of a column over the width of its rows' windows, those of other attentions as levels; the
/// lines of the page that show them. Nothing for a column with fewer than two windows.
std::string draw_widths(const PublishedTable& table, const ReproductionOptions& options,
                        const std::vector<Work>& all, const EndedRuns& ended);

}  // namespace heed
