// Nearest members of the families of structured maps: row by row, and bars by dynamic programming.
#include "heed/attention/structure/map_families.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/core/error.h"

namespace heed {
namespace {

/// Fails where an option is out of range for this map.
void check_family(const SquareMatrix& map, const FamilyOptions& options) {
  if (map.size < 1) fail("structure: the map is empty.");
  if (options.width < 0 || (options.family == MapFamily::bars && options.width < 1))
    fail("structure: w = ", options.width, ". It must be at least ",
         options.family == MapFamily::bars ? 1 : 0, ".");
  if (!(options.dropout >= 0 && options.dropout < 1))
    fail("structure: dropout = ", options.dropout, ". It must be at least 0 and below 1.");
  if (!(options.eps >= 0)) fail("structure: eps = ", options.eps, ". It must be at least 0.");
  if (options.errors < 0) fail("structure: errors = ", options.errors, ". It must be at least 0.");
  if (options.family != MapFamily::bars) return;
  if (options.num_pos < 1 || options.num_pos > map.size || options.num_pos * options.width > map.size) {
    fail("structure: ", options.num_pos, " bars of height ", options.width, " do not fit into a map of ",
         map.size, " rows. num_pos must be at least 1, and num_pos times w at most the number of rows.");
  }
}

/// The entries that P may have in one row: at most `max_entries`, in columns first..last.
struct RowSupport {
  int64_t first, last, max_entries;
};

/// The row of P + E that is nearest to a row of the map, and the sum of its absolute values.
struct NearestRow {
  std::vector<double> values;
  double mass = 0;
};

/// P keeps the largest entries of its support; E takes the largest of the others, clipped at eps.
NearestRow nearest_row(std::span<const double> row, const RowSupport& support, const FamilyOptions& options) {
  NearestRow nearest{std::vector<double>(row.size(), 0.0)};
  const auto is_larger = [&](size_t a, size_t b) {
    const double size_a = std::abs(row[a]), size_b = std::abs(row[b]);
    return size_a > size_b || (size_a == size_b && a < b);
  };
  std::vector<size_t> columns(static_cast<size_t>(support.last - support.first + 1));
  std::iota(columns.begin(), columns.end(), static_cast<size_t>(support.first));
  std::sort(columns.begin(), columns.end(), is_larger);
  columns.resize(std::min(columns.size(), static_cast<size_t>(support.max_entries)));
  std::vector<bool> is_kept(row.size(), false);
  for (const size_t j : columns) {
    nearest.values[j] = row[j];
    nearest.mass += std::abs(row[j]);
    is_kept[j] = true;
  }
  if (options.errors == 0 || options.eps == 0) return nearest;
  std::vector<size_t> other_columns;
  for (size_t j = 0; j < row.size(); ++j) {
    if (!is_kept[j]) other_columns.push_back(j);
  }
  std::sort(other_columns.begin(), other_columns.end(), is_larger);
  other_columns.resize(std::min(other_columns.size(), static_cast<size_t>(options.errors)));
  for (const size_t j : other_columns) {
    nearest.values[j] = std::clamp(row[j], -options.eps, options.eps);
    nearest.mass += std::abs(nearest.values[j]);
  }
  return nearest;
}

RowSupport one_column(int64_t column) { return {.first = column, .last = column, .max_entries = 1}; }

/// The support of row i of the diagonal and band families; for bars, that of a row without a bar.
RowSupport support_of_row(int64_t i, int64_t size, const FamilyOptions& options) {
  if (options.family != MapFamily::band) return one_column(i);
  const int64_t first = std::max<int64_t>(i - options.width, 0), last = std::min(i + options.width, size - 1);
  const double kept = (1 - options.dropout) * static_cast<double>(last - first + 1);
  return {first, last,
          static_cast<int64_t>(std::ceil(kept - 1e-9))};  // 1e-9: rounding may put it above an integer
}

/// gain(a) of every start a: the mass that its rows have with a bar less the mass that they have on the
/// diagonal.
std::vector<double> bar_gains(const SquareMatrix& map, const FamilyOptions& options) {
  std::vector<double> mass_on_diagonal, gains;
  for (int64_t i = 0; i < map.size; ++i)
    mass_on_diagonal.push_back(nearest_row(map.row(i), one_column(i), options).mass);
  for (int64_t a = 0; a + options.width <= map.size; ++a) {
    double gain = 0;
    for (int64_t i = a; i < a + options.width; ++i)
      gain += nearest_row(map.row(i), one_column(a), options).mass - mass_on_diagonal[static_cast<size_t>(i)];
    gains.push_back(gain);
  }
  return gains;
}

/// The starts of `num_pos` bars with the greatest sum of gains; the first of equal ones.
std::vector<int64_t> best_starts(const std::vector<double>& gains, const FamilyOptions& options) {
  const auto num_starts = static_cast<int64_t>(gains.size());
  constexpr double impossible = -std::numeric_limits<double>::infinity();
  // best[k][a]: the greatest gain of k bars whose starts are at least a; -inf where they do not fit.
  std::vector<std::vector<double>> best(static_cast<size_t>(options.num_pos) + 1,
                                        std::vector<double>(gains.size() + 1, impossible));
  std::fill(best[0].begin(), best[0].end(), 0.0);
  // The greatest gain of k bars of which the first starts at a.
  const auto with_bar = [&](size_t k, int64_t a) {
    return gains[static_cast<size_t>(a)] +
           best[k - 1][static_cast<size_t>(std::min(a + options.width, num_starts))];
  };
  for (size_t k = 1; k < best.size(); ++k) {
    for (int64_t a = num_starts - 1; a >= 0; --a)
      best[k][static_cast<size_t>(a)] = std::max(best[k][static_cast<size_t>(a) + 1], with_bar(k, a));
  }
  std::vector<int64_t> starts;
  int64_t a = 0;
  for (size_t k = best.size() - 1; k > 0; --k) {
    while (with_bar(k, a) < best[k][static_cast<size_t>(a)]) ++a;
    starts.push_back(a);
    a = std::min(a + options.width, num_starts);
  }
  return starts;
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
  std::vector<RowSupport> supports;
  for (int64_t i = 0; i < map.size; ++i) supports.push_back(support_of_row(i, map.size, options));
  if (options.family == MapFamily::bars) {
    out.starts = best_starts(bar_gains(map, options), options);
    for (const int64_t start : out.starts)
      std::fill_n(supports.begin() + start, options.width, one_column(start));
  }
  for (int64_t i = 0; i < map.size; ++i) {
    const NearestRow row = nearest_row(map.row(i), supports[static_cast<size_t>(i)], options);
    std::copy(row.values.begin(), row.values.end(), out.matrix.values.begin() + i * map.size);
  }
  out.distance = entrywise_distance(map, out.matrix);
  return out;
}

std::vector<double> band_distances(const SquareMatrix& map, int64_t max_width) {
  std::vector<double> mass_at(static_cast<size_t>(map.size), 0.0);  // by distance from the diagonal
  for (int64_t i = 0; i < map.size; ++i) {
    for (int64_t j = 0; j < map.size; ++j)
      mass_at[static_cast<size_t>(std::abs(i - j))] += std::abs(map.at(i, j));
  }
  std::vector<double> out(static_cast<size_t>(max_width) + 1, 0.0);
  double outside = 0;
  for (int64_t w = std::max(map.size - 2, max_width); w >= 0; --w) {
    if (w + 1 < map.size) outside += mass_at[static_cast<size_t>(w) + 1];
    if (w <= max_width) out[static_cast<size_t>(w)] = outside;
  }
  return out;
}

}  // namespace heed
