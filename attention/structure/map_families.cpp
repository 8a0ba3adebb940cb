// Nearest members of the families of structured maps: row by row, and bars by dynamic programming.
#include "heed/attention/structure/map_families.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/core/error.h"

namespace heed {
namespace {

void check_family(const SquareMatrix& map, const FamilyOptions& o) {
  if (map.size < 1) fail("structure: the map is empty.");
  if (o.width < 0 || (o.family == MapFamily::bars && o.width < 1))
    fail("structure: w = ", o.width, ". It must be at least ", o.family == MapFamily::bars ? 1 : 0, ".");
  if (!(o.dropout >= 0 && o.dropout < 1))
    fail("structure: dropout = ", o.dropout, ". It must be at least 0 and below 1.");
  if (!(o.eps >= 0)) fail("structure: eps = ", o.eps, ". It must be at least 0.");
  if (o.errors < 0) fail("structure: errors = ", o.errors, ". It must be at least 0.");
  if (o.family != MapFamily::bars) return;
  if (o.num_pos < 1 || o.num_pos > map.size || o.num_pos * o.width > map.size) {
    fail("structure: ", o.num_pos, " bars of height ", o.width, " do not fit into a map of ", map.size,
         " rows. num_pos must be at least 1, and num_pos times w at most the number of rows.");
  }
}

/// The columns of P in one row: at most `kept` of first..last.
struct RowPlaces {
  int64_t first, last, kept;
};

/// The nearest row, and the sum of its absolute values.
struct NearestRow {
  std::vector<double> values;
  double mass = 0;
};

NearestRow nearest_row(std::span<const double> row, const RowPlaces& places, const FamilyOptions& o) {
  NearestRow out{std::vector<double>(row.size(), 0.0)};
  const auto larger = [&](int64_t a, int64_t b) {
    const double x = std::abs(row[static_cast<size_t>(a)]), y = std::abs(row[static_cast<size_t>(b)]);
    return x > y || (x == y && a < b);
  };
  std::vector<int64_t> band(static_cast<size_t>(places.last - places.first + 1));
  std::iota(band.begin(), band.end(), places.first);
  std::sort(band.begin(), band.end(), larger);
  std::vector<bool> is_kept(row.size(), false);
  for (int64_t k = 0; k < std::min<int64_t>(places.kept, static_cast<int64_t>(band.size())); ++k) {
    const auto j = static_cast<size_t>(band[static_cast<size_t>(k)]);
    out.values[j] = row[j];
    out.mass += std::abs(row[j]);
    is_kept[j] = true;
  }
  if (o.errors == 0 || o.eps == 0) return out;
  std::vector<int64_t> others;
  for (size_t j = 0; j < row.size(); ++j) {
    if (!is_kept[j]) others.push_back(static_cast<int64_t>(j));
  }
  std::sort(others.begin(), others.end(), larger);
  for (int64_t k = 0; k < std::min<int64_t>(o.errors, static_cast<int64_t>(others.size())); ++k) {
    const auto j = static_cast<size_t>(others[static_cast<size_t>(k)]);
    out.values[j] = std::clamp(row[j], -o.eps, o.eps);
    out.mass += std::abs(out.values[j]);
  }
  return out;
}

RowPlaces single(int64_t column) { return {column, column, 1}; }

RowPlaces band_places(int64_t i, int64_t size, const FamilyOptions& o) {
  if (o.family != MapFamily::band) return single(i);
  const int64_t first = std::max<int64_t>(i - o.width, 0), last = std::min(i + o.width, size - 1);
  const double kept = (1 - o.dropout) * static_cast<double>(last - first + 1);
  return {first, last, static_cast<int64_t>(std::ceil(kept - 1e-9))};
}

/// gain(a) of every start a: the mass that its rows have with a bar less the mass that they have on the
/// diagonal.
std::vector<double> bar_gains(const SquareMatrix& map, const FamilyOptions& o) {
  std::vector<double> diagonal, out;
  for (int64_t i = 0; i < map.size; ++i) diagonal.push_back(nearest_row(map.row(i), single(i), o).mass);
  for (int64_t a = 0; a + o.width <= map.size; ++a) {
    double gain = 0;
    for (int64_t i = a; i < a + o.width; ++i)
      gain += nearest_row(map.row(i), single(a), o).mass - diagonal[static_cast<size_t>(i)];
    out.push_back(gain);
  }
  return out;
}

/// The starts of `num_pos` bars with the greatest sum of gains; the first of equal ones.
std::vector<int64_t> best_starts(const std::vector<double>& gains, const FamilyOptions& o) {
  const auto count = static_cast<int64_t>(gains.size());
  constexpr double never = -std::numeric_limits<double>::infinity();
  // best[k][a]: the greatest gain of k bars whose starts are at least a; -inf where they do not fit.
  std::vector<std::vector<double>> best(static_cast<size_t>(o.num_pos) + 1,
                                        std::vector<double>(gains.size() + 1, never));
  std::fill(best[0].begin(), best[0].end(), 0.0);
  const auto with_bar = [&](size_t k, int64_t a) {
    return gains[static_cast<size_t>(a)] + best[k - 1][static_cast<size_t>(std::min(a + o.width, count))];
  };
  for (size_t k = 1; k < best.size(); ++k) {
    for (int64_t a = count - 1; a >= 0; --a)
      best[k][static_cast<size_t>(a)] = std::max(best[k][static_cast<size_t>(a) + 1], with_bar(k, a));
  }
  std::vector<int64_t> out;
  int64_t a = 0;
  for (size_t k = best.size() - 1; k > 0; --k) {
    while (with_bar(k, a) < best[k][static_cast<size_t>(a)]) ++a;
    out.push_back(a);
    a = std::min(a + o.width, count);
  }
  return out;
}

}  // namespace

const char* to_string(MapFamily family) {
  switch (family) {
    case MapFamily::diagonal:
      return "diagonal";
    case MapFamily::band:
      return "band";
    case MapFamily::bars:
      return "bars";
  }
  return "";
}

NearestMap nearest_map(const SquareMatrix& map, const FamilyOptions& options) {
  check_family(map, options);
  NearestMap out{.matrix = SquareMatrix::zeros(map.size)};
  std::vector<RowPlaces> places;
  for (int64_t i = 0; i < map.size; ++i) places.push_back(band_places(i, map.size, options));
  if (options.family == MapFamily::bars) {
    out.starts = best_starts(bar_gains(map, options), options);
    for (const int64_t start : out.starts) std::fill_n(places.begin() + start, options.width, single(start));
  }
  for (int64_t i = 0; i < map.size; ++i) {
    const NearestRow row = nearest_row(map.row(i), places[static_cast<size_t>(i)], options);
    std::copy(row.values.begin(), row.values.end(), out.matrix.values.begin() + i * map.size);
  }
  out.distance = entrywise_distance(map, out.matrix);
  return out;
}

std::vector<double> band_distances(const SquareMatrix& map, int64_t max_width) {
  std::vector<double> mass(static_cast<size_t>(map.size), 0.0);  // at each distance from the diagonal
  for (int64_t i = 0; i < map.size; ++i) {
    for (int64_t j = 0; j < map.size; ++j)
      mass[static_cast<size_t>(std::abs(i - j))] += std::abs(map.at(i, j));
  }
  std::vector<double> out(static_cast<size_t>(max_width) + 1, 0.0);
  double outside = 0;
  for (int64_t w = std::max(map.size - 2, max_width); w >= 0; --w) {
    if (w + 1 < map.size) outside += mass[static_cast<size_t>(w) + 1];
    if (w <= max_width) out[static_cast<size_t>(w)] = outside;
  }
  return out;
}

}  // namespace heed
