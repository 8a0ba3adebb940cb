// Compares a head's map with its nearest structured maps and with trivial ones.
#include "heed/attention/structure/head_structure.h"

#include <algorithm>
#include <cmath>

#include "heed/core/error.h"

namespace heed {
namespace {

ComparedMatrix compared(const std::string& name, const SquareMatrix& map, const SquareMatrix& other) {
  ComparedMatrix out{.name = name, .entrywise = entrywise_distance(map, other)};
  out.mean = out.entrywise / static_cast<double>(map.size * map.size);
  out.frobenius = frobenius_distance(map, other);
  out.spectral = spectral_distance(map, other);
  out.rank = rank(other);
  return out;
}

std::string starts_text(const std::vector<int64_t>& starts) {
  std::string out;
  for (const int64_t start : starts) out += text(out.empty() ? "bars at " : ", ", start);
  return out;
}

bool bars_fit(const SquareMatrix& map, const StructureOptions& o) {
  return o.width >= 1 && o.num_pos >= 1 && o.num_pos * o.width <= map.size;
}

void add_families(const SquareMatrix& map, const StructureOptions& o, HeadStructure& out) {
  for (const MapFamily family : {MapFamily::diagonal, MapFamily::band, MapFamily::bars}) {
    if (family == MapFamily::bars && !bars_fit(map, o)) continue;
    const NearestMap nearest = nearest_map(map, {.family = family,
                                                 .width = o.width,
                                                 .num_pos = o.num_pos,
                                                 .dropout = o.dropout,
                                                 .eps = o.eps,
                                                 .errors = o.errors});
    out.matrices.push_back(compared(to_string(family), map, nearest.matrix));
    out.matrices.back().note = starts_text(nearest.starts);
  }
}

template <class Number>
Number mean_of(const std::vector<HeadStructure>& maps, Number HeadStructure::*member) {
  double sum = 0;
  for (const HeadStructure& one : maps) sum += static_cast<double>(one.*member);
  const double mean = sum / static_cast<double>(maps.size());
  return std::is_integral_v<Number> ? static_cast<Number>(std::llround(mean)) : static_cast<Number>(mean);
}

/// The means of a matrix over the maps; nothing where one of them lacks it.
std::optional<ComparedMatrix> mean_matrix(const std::vector<HeadStructure>& maps, const std::string& name) {
  ComparedMatrix out{.name = name};
  double ranks = 0;
  const auto count = static_cast<double>(maps.size());
  for (const HeadStructure& one : maps) {
    const auto found = std::find_if(one.matrices.begin(), one.matrices.end(),
                                    [&](const ComparedMatrix& m) { return m.name == name; });
    if (found == one.matrices.end()) return std::nullopt;
    out.entrywise += found->entrywise / count;
    out.mean += found->mean / count;
    out.frobenius += found->frobenius / count;
    out.spectral += found->spectral / count;
    ranks += static_cast<double>(found->rank) / count;
  }
  out.rank = std::llround(ranks);
  return out;
}

}  // namespace

const ComparedMatrix& HeadStructure::of(const std::string& name) const {
  for (const ComparedMatrix& one : matrices) {
    if (one.name == name) return one;
  }
  fail("structure: the map is compared with no matrix '", name, "'.");
}

double HeadStructure::nearest() const {
  double out = INFINITY;
  for (const ComparedMatrix& one : matrices) {
    for (const MapFamily family : {MapFamily::diagonal, MapFamily::band, MapFamily::bars}) {
      if (one.name == to_string(family)) out = std::min(out, one.entrywise);
    }
  }
  return out;
}

HeadStructure head_structure(const SquareMatrix& map, const StructureOptions& o, uint64_t stream) {
  if (map.size > max_structured_size) {
    fail("structure: a map of ", map.size, " rows; the largest that is analysed has ", max_structured_size,
         ". Give a shorter text.");
  }
  HeadStructure out{.size = map.size, .least_row = INFINITY, .greatest_row = -INFINITY};
  for (int64_t i = 0; i < map.size; ++i) {
    double sum = 0;
    for (const double value : map.row(i)) {
      sum += value;
      out.mass += std::abs(value);
    }
    out.least_row = std::min(out.least_row, sum);
    out.greatest_row = std::max(out.greatest_row, sum);
  }
  const SquareMatrix zero = SquareMatrix::zeros(map.size);
  out.frobenius = frobenius_distance(map, zero);
  out.spectral = spectral_distance(map, zero);
  out.rank = rank(map);
  add_families(map, o, out);
  if (o.search_draws > 0 && bars_fit(map, o)) {
    const SearchResult found = random_search(
        map,
        {.width = o.width, .num_pos = o.num_pos, .draws = o.search_draws, .seed = o.seed, .stream = stream});
    if (std::isfinite(found.distance)) {
      out.matrices.push_back(compared("search", map, found.matrix));
      out.matrices.back().note = text("found in the family ", to_string(found.family));
    }
  }
  out.matrices.push_back(compared("zero", map, zero));
  out.matrices.push_back(compared("uniform", map, SquareMatrix::uniform(map.size)));
  out.matrices.push_back(compared("identity", map, SquareMatrix::identity(map.size)));
  out.sweep = band_distances(map, std::min(o.max_width, map.size - 1));
  return out;
}

HeadStructure mean_structure(const std::vector<HeadStructure>& maps) {
  if (maps.empty()) fail("structure: there is no map.");
  if (maps.size() == 1) return maps.front();
  HeadStructure out{.size = mean_of(maps, &HeadStructure::size),
                    .mass = mean_of(maps, &HeadStructure::mass),
                    .least_row = INFINITY,
                    .greatest_row = -INFINITY,
                    .frobenius = mean_of(maps, &HeadStructure::frobenius),
                    .spectral = mean_of(maps, &HeadStructure::spectral),
                    .rank = mean_of(maps, &HeadStructure::rank)};
  size_t widths = maps.front().sweep.size();
  for (const HeadStructure& one : maps) {
    out.least_row = std::min(out.least_row, one.least_row);
    out.greatest_row = std::max(out.greatest_row, one.greatest_row);
    widths = std::min(widths, one.sweep.size());
  }
  for (const ComparedMatrix& one : maps.front().matrices) {
    if (const auto mean = mean_matrix(maps, one.name)) out.matrices.push_back(*mean);
  }
  for (size_t w = 0; w < widths; ++w) {
    double sum = 0;
    for (const HeadStructure& one : maps) sum += one.sweep[w];
    out.sweep.push_back(sum / static_cast<double>(maps.size()));
  }
  return out;
}

}  // namespace heed
