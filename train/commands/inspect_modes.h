// The modes of heed inspect that have files of their own, and what all of its modes share.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/train/program.h"

namespace heed {

/// Shows the maps that a run kept in training, as a page and an animated picture.
int inspect_through_training(const ParsedArguments& arguments);
/// Draws one head anew for each checkpoint that a training writes.
int inspect_watch(const ParsedArguments& arguments);

/// The input, which follows the runs among the arguments; empty where none does.
std::string inspected_text(const ParsedArguments& arguments);
/// Fails at the first of these options that is given: "inspect: --OPTION WHY".
void refuse_inspect_options(const ParsedArguments& arguments, const std::vector<std::string>& options,
                            const std::string& why);
/// The maps that --kind and --layer leave; a usage error, which names all maps, where there is none.
std::vector<MapView> wanted_maps(const std::vector<MapView>& maps, const ParsedArguments& arguments);
/// The head of a map that --head gives, else `otherwise`; a usage error where the map has no such head.
int64_t chosen_head(const MapView& map, int64_t otherwise, const ParsedArguments& arguments);

}  // namespace heed
