// Loads runs one after the other and takes their maps of the same input.
#include "heed/train/session/side_by_side_runs.h"

#include <algorithm>
#include <set>

#include "heed/attention/inspect/head_matching.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/run_inputs.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

/// The names of the folders; whole paths where two runs have the same name.
std::vector<std::string> names_of_runs(const std::vector<Path>& runs) {
  std::vector<std::string> names;
  for (const Path& run : runs) names.push_back(run.lexically_normal().filename().string());
  const std::set<std::string> distinct(names.begin(), names.end());
  if (distinct.size() == names.size() && !distinct.contains("")) return names;
  names.clear();
  for (const Path& run : runs) names.push_back(run.string());
  return names;
}

}  // namespace

SideBySide side_by_side(const std::vector<Path>& runs, const std::string& input, const std::string& which) {
  const std::vector<std::string> names = names_of_runs(runs);
  SideBySide out;
  std::string task, text_of_all = input;
  for (size_t i = 0; i < runs.size(); ++i) {
    LoadedRun run = load_run(runs[i], {.checkpoint = which, .with_data = needs_data(text_of_all)});
    if (i == 0) {
      task = run.config.task_name;
      if (input.empty()) text_of_all = map_provider(*run.config.task).example_text();
    }
    if (run.config.task_name != task)
      fail("inspect: ", runs[i], " is of the task ", run.config.task_name, ", but ", runs[0], " of ", task,
           ". Name runs of one task.");
    std::string caption;
    std::vector<MapView> maps = map_provider(*run.config.task).maps(*run.model, text_of_all, caption);
    if (maps.empty()) fail("inspect: the attentions of ", runs[i], " have no maps.");
    if (i == 0) out.caption = caption;
    if (i > 0) {
      if (const std::string why = why_incomparable(out.models.front().second, maps); !why.empty()) {
        fail("inspect: ", runs[0], " and ", runs[i], " cannot be laid side by side: ", why, ".",
             task == "translate" && text_of_all.find(" ||| ") == std::string::npos
                 ? " If their translations differ, give both the same one: \"SOURCE ||| TARGET\"."
                 : "");
      }
    }
    out.models.emplace_back(names[i], std::move(maps));
  }
  for (const std::string& name : names) out.title += (out.title.empty() ? "" : " and ") + name;
  return out;
}

void write_compared_maps(Comparison& comparison, const Path& folder) {
  std::vector<Path> runs;
  std::vector<std::string> labels;
  for (const ComparedRun& run : comparison.runs) {
    if (run.folder.empty() || !run.failure.empty()) continue;
    if (std::find(labels.begin(), labels.end(), run.label) != labels.end()) continue;
    labels.push_back(run.label);
    runs.emplace_back(run.folder);
  }
  if (runs.size() < 2) return;
  std::string page;
  try {
    SideBySide all = side_by_side(runs, "", "");
    for (size_t i = 0; i < labels.size(); ++i) all.models[i].first = labels[i];
    all.title = comparison.title + ": heads side by side";
    page = side_by_side_page(all);
  } catch (const Error& error) {  // a comparison is complete without this page
    comparison.maps_missing = error.what();
    return;
  }
  io::make_directories(folder);
  io::write_own(folder / "maps.html", page);
  comparison.maps = "maps.html";
}

}  // namespace heed
