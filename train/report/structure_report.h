// The structure of heads as a table for a terminal, as JSON and as an offline page.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/attention/structure/head_structure.h"
#include "heed/core/io/json.h"
#include "heed/train/report/chart.h"

namespace heed {

/// A head, and the means over its maps.
struct AnalysedHead {
  std::string map;          ///< module path or file: "encoder.blocks.0.attention"
  int64_t head = 0;         ///< from 0
  int64_t num_maps = 1;     ///< that the means are over
  HeadStructure structure;  ///< the means
};

/// A table for each map: a row for each head, entry-wise distances, ranks and norms; below it the share of
/// the mass outside the band for some w, and what is odd about the maps.
std::string structure_text(const std::vector<AnalysedHead>& heads, const StructureOptions& options);
/// All numbers: options, then each head with its distances and its sweep.
Json structure_json(const std::vector<AnalysedHead>& heads, const StructureOptions& options);
/// The share of the mass outside the band over w, a line for each head of one map.
Chart structure_chart(const std::vector<AnalysedHead>& heads, const std::string& map);
/// An offline page: a table and a chart for each map, then `maps` to look at, under `caption`.
std::string structure_page(const std::vector<AnalysedHead>& heads, const StructureOptions& options,
                           const std::string& title, const std::vector<MapView>& maps,
                           const std::string& caption);

}  // namespace heed
