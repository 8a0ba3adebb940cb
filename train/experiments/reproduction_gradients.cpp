// Measures derivatives of outputs by scores, at random inputs and in trained models, beside FAST's bound.
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/random.h"
#include "heed/train/experiments/attention_errors.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/experiments/score_gradients.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/find_data.h"

namespace heed {
namespace {

constexpr int64_t head_width = 32;  // features of a random query
constexpr int64_t max_windows = 8;  // windows of text that a trained model reads

/// A head whose queries, keys and values are normal numbers of deviation 1.
Heads random_head(int64_t tokens, uint64_t seed) {
  Rng rng(seed);
  Heads out;
  for (Tensor* x : {&out.q, &out.k, &out.v}) {
    *x = Tensor::zeros(Shape{1, 1, tokens, head_width});
    fill_normal(*x, 0, 1, rng);
  }
  return out;
}

/// The first run of a language model in a folder, or in its folder `runs`, that attends by this spec. Fails
/// where there is none.
Path run_with(const Path& folder, const std::string& spec) {
  for (const Path& place : {folder, folder / "runs"}) {
    if (!io::is_directory(place)) continue;
    for (const Path& name : io::list(place)) {
      const Path run = place / name;
      if (!io::exists(run / "config.toml")) continue;
      const Path file = RunFolder::look(run).config();
      const Config config = read_config(io::read(file), file.string());
      if (config.task_name == "lm" && full_spec(config.attention.decoder) == full_spec(spec)) return run;
    }
  }
  fail(Fault::data, "no run of a language model with ", spec, " lies in ", folder.string(),
       ". Train one: ", program_name(), " train PRESET --attention ", spec, " --out ", folder.string());
}

/// Measures a cell: random heads with seeds 1 to ReproductionOptions::seeds, or the heads of a trained run.
void measure_cell(PlannedCell& planned, const ReproductionOptions& options) {
  const std::string& spec = planned.row->attention_on(*planned.column);
  const ScoreWeighting f(spec);
  ScoreGradients found;
  std::vector<double> largest;
  if (planned.column->tokens > 0) {
    for (int64_t seed = 1; seed <= options.seeds; ++seed) {
      stop_if_asked(options.runs.budget);
      found.largest = 0;
      found.add(f, random_head(planned.column->tokens, static_cast<uint64_t>(seed)), /*causal=*/false);
      largest.push_back(found.largest);
    }
  } else {
    const AttentionErrors model(run_with(find_data(data_of(*planned.column, options)), spec), max_windows);
    model.visit_heads(0, [&](const Heads& heads) { found.add(f, heads, /*causal=*/true); });
    largest.push_back(found.largest);
    planned.result.remark = model.description() + "; ";
  }
  planned.result.ours = spread_of(largest);
  planned.result.baseline = text("at most ", picture::fixed(found.by_scores, 2));
  planned.result.remark +=
      text("scores from ", picture::fixed(found.min_score, 1), " to ", picture::fixed(found.max_score, 1),
           "; ", formatted("%.2g", 100 * found.num_above / found.num_pairs),
           " % of the pairs of a query and a key are above 1");
}

}  // namespace

void measure_score_gradients(const PublishedTable& table, const ReproductionOptions& options,
                             std::vector<PlannedCell>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.runs.quiet;
  measure_each(all, [&](PlannedCell& planned) {
    progress.say("measure", text(table.name, ", ", planned.position, ": ", planned.result.name));
    measure_cell(planned, options);
  });
}

}  // namespace heed
