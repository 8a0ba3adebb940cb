// Plans the runs of a comparison, and writes its results.
#include "heed/train/experiments/comparison_plan.h"

#include <algorithm>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/layered_spec.h"
#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/comparison_sweep.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

constexpr size_t max_label = 60;  // bytes of a label in a run's name

}  // namespace

std::vector<std::string> split_specs(const std::string& list) {
  std::vector<std::string> specs = split_spec_list(list);
  for (std::string& spec : specs) {
    const bool is_grouped = spec.size() > 2 && spec.front() == '(' && spec.back() == ')';
    if (!is_grouped && spec.find_first_of("()*") != spec.npos)
      fail("--attention ", shown(list), ": '", shown(spec),
           "' is not one attention. Put one whose layers differ in parentheses: '(gla*3,softmax),linear'.");
    if (is_grouped) spec = spec.substr(1, spec.size() - 2);
  }
  return specs;
}

std::string file_word(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (is_ascii_alphanumeric(c) || c == '_')
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  return out;
}

std::string title_of(const PlannedRun& plan) {
  std::string out = plan.label;
  picture::append_part(out, point_text(plan.point), ", ");
  return text(out, ", seed ", plan.seed);
}

Path folder_of(const PlannedRun& plan, const Path& folder) { return folder / "runs" / plan.name; }

int64_t total_steps(const Path& run) {
  const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
  const Json* steps = manifest ? manifest->find("steps") : nullptr;
  return steps != nullptr && steps->is_integer() ? steps->integer() : 0;
}

bool has_begun(const PlannedRun& plan, const Path& folder) {
  return io::exists(folder_of(plan, folder) / "config.toml");
}

bool is_trained(const PlannedRun& plan, const Path& folder) {
  return io::exists(folder_of(plan, folder) / "scores.json");
}

Path write_plan(const PlannedRun& plan, const Path& folder) {
  const Path file = folder / "plans" / (plan.name + ".toml");
  io::make_directories(file.parent_path());
  io::write_own(file, plan.plan);
  return file;
}

void stop_if_asked(const TimeBudget& budget) {
  if (const int signal = StopSignals::received(); signal != 0) throw Stopped{signal};
  if (budget.spent()) throw Stopped{};
}

std::string to_string(const Stopped& stopped) {
  return stopped.signal == 0 ? "the budget is spent, everything is saved" : "stopped, and saved";
}

int exit_code(const Stopped& stopped) { return stopped.signal == 0 ? 0 : 128 + stopped.signal; }

PlannedRun plan_run(Config config, const std::string& label, const PlannedRun* base,
                    std::vector<std::string> changes) {
  PlannedRun out{.label = label, .seed = config.train.seed, .name = "", .plan = to_toml(config)};
  if (base != nullptr) out.from = base->name;
  out.changes = std::move(changes);
  std::string settings = config.task_name + "\n" + (out.from.empty() ? "" : out.from + "\n");
  for (const OptionText& option : options_of(config)) settings += option.name + "=" + option.value + "\n";
  out.name =
      text(file_word(label).substr(0, max_label), "-seed", out.seed, "-", sha256_hex(settings).substr(0, 10));
  return out;
}

void write_comparison(const Comparison& comparison, const Path& folder) {
  io::make_directories(folder);
  io::write_own(folder / "compare.csv", comparison_csv(comparison));
  io::write_own(folder / "compare.md", comparison_markdown(comparison));
  io::write_own(folder / "compare.tex", comparison_latex(comparison));
  for (const auto& charts : {comparison_charts(comparison), sweep_charts(comparison)}) {
    for (const auto& [name, chart] : charts)
      io::write_own(folder / (file_word(name) + ".svg"), chart_svg(chart));
  }
  if (const BubbleChart bubbles = comparison_bubbles(comparison); !bubbles.bubbles.empty())
    io::write_own(folder / "bubbles.svg", bubbles_svg(bubbles));
  io::write_own(folder / "compare.html", comparison_html(comparison));
}

}  // namespace heed
