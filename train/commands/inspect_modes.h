// What heed inspect shows besides the maps of one input: several steps, several runs, several layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/train/commands/command.h"

namespace heed {

/// The options of these modes: --through-training, --watch, --logit-lens and --json.
std::vector<CommandOption> inspect_mode_options();

/// Runs the mode that the arguments ask for, by an option or by naming several runs, and gives its exit code;
/// none where they ask for the maps of one run.
std::optional<int> run_inspect_mode(const ParsedArguments& arguments);

/// Maps kept on the way, as a page and an animated picture.
int inspect_through_training(const ParsedArguments& arguments);
/// The maps of several runs for one input, on one page.
int inspect_side_by_side(const ParsedArguments& arguments);
/// One head, drawn anew for each checkpoint that a training writes.
int inspect_watch(const ParsedArguments& arguments);
/// What each layer would predict.
int inspect_logit_lens(const ParsedArguments& arguments);

/// How many of the positional arguments are runs: the first, and those behind it that are folders of runs.
size_t count_runs(const ParsedArguments& arguments);
/// The input: what stands behind the runs; empty where nothing does.
std::string inspected_text(const ParsedArguments& arguments);
/// Whether a task must read its data to find this input: an example by its number, or none given.
bool needs_data(const std::string& input);
/// --out, or RUN/inspect; made where it is missing. In RUN, which may come from elsewhere, no link is
/// followed.
Path inspect_folder(const ParsedArguments& arguments, const Path& run);
/// The map and head that --kind, --layer and --head choose; without --head the one to show first. Fails where
/// there is none.
HeadChoice chosen_head(const ParsedArguments& arguments, const std::vector<MapView>& maps);

}  // namespace heed
