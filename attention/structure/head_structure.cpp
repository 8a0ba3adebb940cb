// Compares a head's map with its nearest structured maps and with trivial ones.
#include "heed/attention/structure/head_structure.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "heed/core/error.h"

namespace heed {
namespace {

ComparedMatrix comparison_of(const std::string& name, const SquareMatrix& map, const SquareMatrix& matrix) {
  const double entrywise = entrywise_distance(map, matrix);
  return {.name = name,
          .entrywise = entrywise,
          .mean_error = entrywise / static_cast<double>(map.size * map.size),
          .frobenius = frobenius_distance(map, matrix),
          .spectral = spectral_distance(map, matrix),
          .rank = rank(matrix)};
}

/// "bars at 3, 17"; empty without bars.
std::string starts_text(const std::vector<int64_t>& starts) {
  std::string out;
  for (const int64_t start : starts) out += text(out.empty() ? "bars at " : ", ", start);
  return out;
}

bool bars_fit(const SquareMatrix& map, const StructureOptions& options) {
  return options.width >= 1 && options.num_pos >= 1 && options.num_pos * options.width <= map.size;
}

/// Adds the matrix nearest to the map from each family; bars only where they fit.
void add_families(const SquareMatrix& map, const StructureOptions& options, HeadStructure& out) {
  for (const MapFamily family : {MapFamily::diagonal, MapFamily::band, MapFamily::bars}) {
    if (family == MapFamily::bars && !bars_fit(map, options)) continue;
    const NearestMap nearest = nearest_map(map, {.family = family,
                                                 .width = options.width,
                                                 .num_pos = options.num_pos,
                                                 .dropout = options.dropout,
                                                 .eps = options.eps,
                                                 .errors = options.errors});
    out.matrices.push_back(comparison_of(to_string(family), map, nearest.matrix));
    out.matrices.back().note = starts_text(nearest.starts);
  }
}

/// The mean of a member over the maps; rounded where it is an integer.
template <class Number>
Number mean_of(const std::vector<HeadStructure>& maps, Number HeadStructure::*member) {
  double sum = 0;
  for (const HeadStructure& map : maps) sum += static_cast<double>(map.*member);
  const double mean = sum / static_cast<double>(maps.size());
  return std::is_integral_v<Number> ? static_cast<Number>(std::llround(mean)) : static_cast<Number>(mean);
}

/// The means of the distances of the matrix `name` over the maps; empty where a map was not compared with it.
std::optional<ComparedMatrix> mean_matrix(const std::vector<HeadStructure>& maps, const std::string& name) {
  ComparedMatrix out{.name = name};
  double ranks = 0;
  const auto count = static_cast<double>(maps.size());
  for (const HeadStructure& map : maps) {
    const auto found = std::find_if(map.matrices.begin(), map.matrices.end(),
                                    [&](const ComparedMatrix& m) { return m.name == name; });
    if (found == map.matrices.end()) return std::nullopt;
    out.entrywise += found->entrywise / count;
    out.mean_error += found->mean_error / count;
    out.frobenius += found->frobenius / count;
    out.spectral += found->spectral / count;
    ranks += static_cast<double>(found->rank) / count;
  }
  out.rank = std::llround(ranks);
  return out;
}

}  // namespace

const ComparedMatrix& HeadStructure::of(const std::string& name) const {
  for (const ComparedMatrix& matrix : matrices) {
    if (matrix.name == name) return matrix;
  }
  fail("structure: the map is compared with no matrix '", name, "'.");
}

double HeadStructure::nearest() const {
  double min_distance = INFINITY;
  for (const ComparedMatrix& matrix : matrices) {
    for (const MapFamily family : {MapFamily::diagonal, MapFamily::band, MapFamily::bars}) {
      if (matrix.name == to_string(family)) min_distance = std::min(min_distance, matrix.entrywise);
    }
  }
  return min_distance;
}

HeadStructure head_structure(const SquareMatrix& map, const StructureOptions& options, uint64_t stream) {
  if (map.size > max_structured_size) {
    fail("structure: a map of ", map.size, " rows; the largest that is analysed has ", max_structured_size,
         ". Give a shorter text.");
  }
  HeadStructure out{.size = map.size, .min_row_sum = INFINITY, .max_row_sum = -INFINITY};
  for (int64_t i = 0; i < map.size; ++i) {
    double sum = 0;
    for (const double weight : map.row(i)) {
      sum += weight;
      out.mass += std::abs(weight);
    }
    out.min_row_sum = std::min(out.min_row_sum, sum);
    out.max_row_sum = std::max(out.max_row_sum, sum);
  }
  const SquareMatrix zero = SquareMatrix::zeros(map.size);
  out.frobenius = frobenius_distance(map, zero);
  out.spectral = spectral_distance(map, zero);
  out.rank = rank(map);
  add_families(map, options, out);
  if (options.search_draws > 0 && bars_fit(map, options)) {
    const SearchResult found = random_search(map, {.width = options.width,
                                                   .num_pos = options.num_pos,
                                                   .draws = options.search_draws,
                                                   .seed = options.seed,
                                                   .stream = stream});
    if (std::isfinite(found.distance)) {
      out.matrices.push_back(comparison_of("search", map, found.matrix));
      out.matrices.back().note = text("found in the family ", to_string(found.family));
    }
  }
  out.matrices.push_back(comparison_of("zero", map, zero));
  out.matrices.push_back(comparison_of("uniform", map, SquareMatrix::uniform(map.size)));
  out.matrices.push_back(comparison_of("identity", map, SquareMatrix::identity(map.size)));
  out.sweep = band_distances(map, std::min(options.max_width, map.size - 1));
  return out;
}

HeadStructure mean_structure(const std::vector<HeadStructure>& maps) {
  if (maps.empty()) fail("structure: there is no map.");
  if (maps.size() == 1) return maps.front();
  HeadStructure out{.size = mean_of(maps, &HeadStructure::size),
                    .mass = mean_of(maps, &HeadStructure::mass),
                    .min_row_sum = INFINITY,
                    .max_row_sum = -INFINITY,
                    .frobenius = mean_of(maps, &HeadStructure::frobenius),
                    .spectral = mean_of(maps, &HeadStructure::spectral),
                    .rank = mean_of(maps, &HeadStructure::rank)};
  size_t num_widths = maps.front().sweep.size();
  for (const HeadStructure& map : maps) {
    out.min_row_sum = std::min(out.min_row_sum, map.min_row_sum);
    out.max_row_sum = std::max(out.max_row_sum, map.max_row_sum);
    num_widths = std::min(num_widths, map.sweep.size());
  }
  for (const ComparedMatrix& matrix : maps.front().matrices) {
    if (const auto mean = mean_matrix(maps, matrix.name)) out.matrices.push_back(*mean);
  }
  for (size_t w = 0; w < num_widths; ++w) {
    double sum = 0;
    for (const HeadStructure& map : maps) sum += map.sweep[w];
    out.sweep.push_back(sum / static_cast<double>(maps.size()));
  }
  return out;
}

}  // namespace heed
