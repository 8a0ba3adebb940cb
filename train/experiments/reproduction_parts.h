// Internal: shared by the parts of a reproduction.
#pragma once

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/structure/head_structure.h"
#include "heed/core/io/json.h"
#include "heed/core/io/table_text.h"
#include "heed/train/experiments/child_measurement.h"
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

/// A cell of the table, the runs planned for it, and those found on file.
struct PlannedCell {
  const PublishedRow* row;        ///< row of the published table
  const PublishedColumn* column;  ///< column of the published table
  size_t column_index;            ///< index of `column`, for PublishedRow::values
  bool is_requested = false;      ///< named in ReproductionOptions::rows, or needed by a row that is
  bool has_data = false;          ///< whether the column's data is found or not needed
  std::string position{};         ///< place among the cells that can run: "3 of 35"
  /// The trainings whose runs count: one for each seed. With a grid: those of its best point, once it is
  /// known.
  std::vector<PlannedRun> plans{};
  CellResult result;  ///< what is known of the cell before its runs
  /// Runs of other calls and machines, whose curves with scores lie in results_folder(), by ascending seeds:
  /// those with the settings and the data of this cell.
  std::vector<FiledRun> finished_on_file{};
  /// Runs on file without scores yet, of seeds that are not planned here.
  std::vector<FiledRun> unfinished_on_file{};
  HeadStructure structure{};         ///< distances of the cell's map to structured matrices, for map_distance
  Json statistics{};                 ///< statistics of the cell, for Measure::swapped; null: not measured
  std::vector<PlannedRun> trials{};  ///< with a grid of settings: one training for each point and seed

  /// All planned trainings.
  const std::vector<PlannedRun>& trainings() const { return trials.empty() ? plans : trials; }
  /// A cell without plans, runs and value.
  static PlannedCell of(const PublishedTable& table, const PublishedRow& row, size_t column_index);
};

/// The cells that the options ask for: all without --rows. A usage error for a pattern that names none.
std::vector<PlannedCell> wanted_cells(const PublishedTable& table, const ReproductionOptions& options);
/// Gives up a cell: its remark and exit code are those of the error, and nothing is run for it.
void mark_failed(PlannedCell& planned, const Error& why);
/// True if a cell has its data and an attention that this program has.
bool can_run(const PlannedCell& planned);
/// A member of a manifest or of one of its sessions as text; empty where it is missing or null.
std::string fact_of(const Json& json, const char* name);
/// The fact of this name in the header of a curve; empty where it is missing.
std::string fact_of(const Facts& facts, const std::string& name);

/// The settings of a cell's training with the seed that is `seed` above the preset's, at a point of the
/// table's grid.
Config config_of(const PlannedCell& planned, const ReproductionOptions& options, int64_t seed,
                 const GridPoint& point = {});
/// The settings of the column's preset, changed as the published column and row say.
Config recipe_of(const PlannedCell& planned);
/// The settings of `config` that differ from recipe_of(): "train.max_steps 100 (recipe: 50000)", or "(row:
/// 500)" where the row sets it. Attention, data and seed are not compared.
std::string deviations_of(const PlannedCell& planned, Config& config);
/// Name of the validation score whose curve is drawn: "accuracy". Runs that log no such score show the loss.
std::string curve_score(const PublishedTable& table);
/// The file that a column's runs read: that of --data, else that of the table; empty: the preset's.
std::string data_of(const PublishedColumn& column, const ReproductionOptions& options);
/// A number with commas between groups of three digits: 50,000.
std::string grouped(int64_t number);
/// The runs of a cell that have scores or have failed, by the names of their plans.
using EndedRuns = std::map<std::string, ComparedRun>;
/// The run of a plan where it has ended with scores; null otherwise.
const ComparedRun* finished_run(const EndedRuns& ended, const PlannedRun& plan);
/// With a grid: once all trainings of a cell have ended, makes those of its best point by validation
/// PlannedCell::plans; mark_failed() where no run has a validation score.
void take_best_point(PlannedCell& planned, const EndedRuns& ended);
/// How many points of its grid a cell has trained: "2 of 4 settings have ended".
std::string ended_points_text(const PublishedTable& table, const PlannedCell& planned,
                              const EndedRuns& ended);
/// The points of a cell's runs, of how many they are the best, and what is at the edge of the grid or has
/// failed; empty without a grid.
std::string best_point_text(const PublishedTable& table, const PlannedCell& planned, const EndedRuns& ended,
                            const std::vector<const ComparedRun*>& runs);
/// The result of a cell from the scores of its runs. `baseline_run` is the first run of the table's first row
/// in its column, which speedups are relative to; null: none.
CellResult judged_cell(const PublishedTable& table, const ReproductionOptions& options,
                       const PlannedCell& planned, const EndedRuns& ended, const ComparedRun* baseline_run);

/// Sets the verdict of a result that has a value, and the row's note as its remark where it has none.
void set_verdict(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
                 CellResult& result);

/// Calls measure(planned) for each cell that can run, one after the other; mark_failed() for its errors.
template <class Measurement>
void measure_each(std::vector<PlannedCell>& all, const Measurement& measure) {
  for (PlannedCell& planned : all) {
    if (!can_run(planned)) continue;
    try {
      measure(planned);
    } catch (const Error& error) {
      mark_failed(planned, error);
    }
  }
}

/// Trains the cells and writes their results into `result`.
void train_cells(const PublishedTable& table, const ReproductionOptions& options,
                 std::vector<PlannedCell>& all, Reproduction& result);
/// Measures the cells of Measure::steps_per_second.
void measure_speeds(const PublishedTable& table, const ReproductionOptions& options,
                    std::vector<PlannedCell>& all);
/// Measures the cells of Measure::crossover: lengths from which attention is faster than softmax.
void measure_crossovers(const PublishedTable& table, const ReproductionOptions& options,
                        std::vector<PlannedCell>& all);

/// Measures the cells of Measure::map_distance: distances of maps to the nearest structured matrices, found
/// by the random search of the thesis and exactly.
void measure_map_distances(const PublishedTable& table, const ReproductionOptions& options,
                           std::vector<PlannedCell>& all);
/// Measures the cells of Measure::score_gradient: largest derivatives of outputs by scores.
void measure_score_gradients(const PublishedTable& table, const ReproductionOptions& options,
                             std::vector<PlannedCell>& all);
/// Measures the cells of Measure::swapped: statistics of the run of the options under each cell's attention.
void measure_swapped_attention(const PublishedTable& table, const ReproductionOptions& options,
                               std::vector<PlannedCell>& all);

/// The folder of `heed bench attention` for a cell, which measures it with and without a causal mask.
Path lengths_folder(const PlannedCell& planned, const ReproductionOptions& options);
/// The longest sequence at which a row with heads of this width is timed: twice the longest published
/// crossover, so that the crossover lies between two measured lengths, and at least 2048.
int64_t longest_length(const PublishedTable& table, const PublishedRow& row, int64_t head_dim);

/// Words as lines of a Markdown page; those after the first begin with `indent`.
inline std::string wrapped(const std::string& words, const std::string& indent = "") {
  return folded(words, 120, indent);
}
/// A line of a Markdown table: "| a | b |".
inline std::string table_line(const std::vector<std::string>& cells) {
  return text("| ", picture::joined(cells, " | "), " |\n");
}
/// The facts in which all runs of one cell must agree: recipe, attention, changed settings, data and the
/// table's grid, where it has one. The best point of the grid is a result, which may differ.
Facts setting_facts(const PublishedTable& table, const ReproductionOptions& options,
                    const PlannedCell& planned);
/// The differences between the settings and data of a curve on file and those of a run of this call:
/// "changed: on file train.max_steps 6 (recipe: 50000), here nothing"; empty where they agree.
std::string different_facts(const Facts& on_file, const Facts& here);
/// Words as text of a Markdown page, whatever they hold: marks of Markdown and HTML are escaped, control
/// characters and line breaks made visible.
std::string markdown_escaped(std::string_view words);
/// The facts in the header of a curve, without scores.
FactList curve_facts(const PublishedTable& table, const ReproductionOptions& options,
                     const PlannedCell& planned, const PlannedRun& plan);
/// Writes the curve of a run into curve_file() as far as the run has come, with its scores if it has `ended`
/// (null: it trains). Writes nothing for a run without metrics, nor where keeps_curve_on_file().
void write_curve(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
                 const PlannedRun& plan, const ComparedRun* ended);
/// The fact "data" of runs whose data --data named.
inline constexpr const char* given_data = "the files of --data";
/// The facts of a curve's header with the scores of a finished run.
FactList score_facts(const ComparedRun& run);
/// True if the curve on file must not be replaced by that of a run with the facts `here` that has taken
/// `step` steps and `has_scores`. A finished run on file gives way only to a finished run of the same
/// settings and data; an unfinished one to any finished run, and to an unfinished run of the same settings
/// and data that has come at least as far. Fault::data for a file that cannot be read.
bool keeps_curve_on_file(const Path& file, const Facts& here, int64_t step, bool has_scores);
/// The different_facts() of the curve on file and `here`; empty without a file.
std::string differences_on_file(const Path& file, const Facts& here);
/// Sets PlannedCell::finished_on_file of all cells from results_folder(), and adds to them the cells of the
/// table that have such runs but are not among them. Skips seeds whose runs have ended here with scores, and
/// leaves out runs of other settings or data than the cell's, which its note names. Fault::data for a file
/// that cannot be read.
void add_filed_runs(const PublishedTable& table, const ReproductionOptions& options, const EndedRuns& ended,
                    std::vector<PlannedCell>& all);
/// True if the run of this seed that counts in the cell is one on file.
bool counts_from_file(const PlannedCell& planned, int64_t seed);
/// The file of a run's curve: TABLE-ROW-COLUMN-sSEED.csv in results_folder().
Path curve_file(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
                int64_t seed);
/// The input of the parts of a table's page.
struct PageInput {
  const PublishedTable& table;          ///< table that is reproduced
  const ReproductionOptions& options;   ///< options of this call
  const std::vector<PlannedCell>& all;  ///< cells with runs here or on file
  const EndedRuns& ended;               ///< runs of this call

  /// The cells of a column.
  std::vector<const PlannedCell*> in_column(const PublishedColumn& column) const;
  /// The runs of a cell that have ended in this call with scores.
  std::vector<const ComparedRun*> finished(const PlannedCell& planned) const;
  /// Writes a file into results_folder(); its name, which is returned, is TABLE-WORD and `ending`.
  std::string write_file(const std::string& words, const std::string& ending,
                         const std::string& content) const;
  /// Writes a picture by write_file(); returns the line that shows it.
  std::string put_picture(const std::string& words, const std::string& ending, const std::string& title,
                          const std::string& svg) const;
};

/// Program, commit, machine and date of a table's runs, as text.
struct Origins {
  std::string shared;                          ///< lines with the values that all runs share
  std::map<std::string, std::string> by_cell;  ///< the values that differ, by the name of the cell
};
/// The origins of all runs that have begun in this call and of those on file.
Origins origins_of(const PageInput& input);

/// Writes TABLE.md and its pictures.
void write_page(const PageInput& input, const Reproduction& result);

/// The mean of a score over the runs of a cell that have it, here and on file; NaN: none has it.
double mean_score(const PageInput& input, const PlannedCell& planned, const std::string& score);

/// The state of all cells of a table that trains as a grid of rows and columns, and as TABLE-cells.csv; empty
/// for other tables.
std::string draw_glance(const PageInput& input, const Reproduction& result);

// Parts of the page: each draws its pictures and returns the lines that show them.

/// Accuracy over speed, with memory as area: a picture for each column with a run, and one for the means over
/// all columns.
std::string draw_bubbles(const PageInput& input);
/// The maps of all finished models side by side.
std::string draw_maps(const PageInput& input, const PublishedColumn& column);
/// BLEU by the length of the source as a table, a picture and a CSV; empty without a finished run.
std::string draw_by_length(const PageInput& input, const PublishedColumn& column);
/// Cross-attention of each finished model while it translates the column's sentence: the sharpest head of the
/// cell's first run.
std::string draw_alignments(const PageInput& input, const PublishedColumn& column);
/// Time of a forward pass over the length, read from the files of measure_crossovers().
std::string draw_lengths(const PageInput& input, const PublishedColumn& column);
/// The results of measure_map_distances() as a table, CSV and pictures.
std::string draw_distances(const PageInput& input, const PublishedColumn& column);
/// Score and loss over the width of the rows' windows, with horizontal lines for other attentions. Empty for
/// columns with fewer than two windows.
std::string draw_widths(const PageInput& input, const PublishedColumn& column);
/// The score of a column's runs over the numbers that their models keep while they decode, a line for each
/// attention; empty without a score.
std::string draw_states(const PageInput& input, const PublishedColumn& column);
/// Tables and curves over E of the statistics of measure_swapped_attention(), and tree_claims().
std::string draw_swaps(const PageInput& input);

}  // namespace heed
