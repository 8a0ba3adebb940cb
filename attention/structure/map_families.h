// The three families of structured maps of Conti 2024, and the nearest member of each to a given map.
//
// Conti 2024, "An alternative formulation of the attention pooling function in translation", section 2.1,
// replaces a map by P + E: P structured, E sparse with |e_ij| <= eps. The families are:
//
//   diagonal         P has free values on its diagonal, nothing else.
//   band             P has free values where |i - j| <= w; with `dropout` p, at most ceil((1 - p) b) of the b
//                    entries of a row's band are not zero.
//   bars             num_pos rare tokens, each at a start a of 0..n - w, the starts at least w apart. Rows
//                    a..a + w - 1 have one free value each, in column a (a bar of height w); each other row
//                    has its free value on the diagonal.
//   E                at most `errors` entries of a row that P leaves at zero, each of at most eps.
//
// The distance is sum_ij |A_ij - X_ij|. It is a sum over rows, and within a row over entries, so it is least
// where P keeps the entries of A at its places (of a thinned band: the largest) and E takes min(|a|, eps) of
// the largest of the others. For bars the starts remain: a bar at a changes the sum by
//
//   gain(a) = sum_{i = a}^{a + w - 1} (mass of row i with its value in column a - its mass otherwise)
//
// whatever the other bars are, since no two share a row. So the best starts are those of the greatest sum of
// gains, by dynamic programming: f(k, a) = max(f(k, a + 1), gain(a) + f(k - 1, a + w)), the best of k starts
// from a on. All three are exact; without E the diagonal and the band are nearest in the Frobenius norm, too.
// The rows of a nearest matrix are not normalised: those of the families that the thesis draws are.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/attention/structure/square_matrix.h"

namespace heed {

/// The families Sigma 1, 2 and 3 of the thesis: positional, syntactic, rare-token heads.
enum class MapFamily { diagonal, band, bars };
/// The word for a family: "diagonal", "band", "bars".
const char* to_string(MapFamily family);

/// A family, and the limits on the entries of its members.
struct FamilyOptions {
  MapFamily family = MapFamily::band;  ///< the positions of P
  int64_t width = 3;                   ///< w: diagonals to either side of a band, or the height of a bar
  int64_t num_pos = 2;                 ///< number of bars
  double dropout = 0;                  ///< share of zeros in each row of a band, 0 to below 1
  double eps = 0;                      ///< largest absolute value of an entry of E
  int64_t errors = 0;  ///< largest number of entries of E in a row; 1 on average in the thesis
};

/// The nearest member of a family.
struct NearestMap {
  SquareMatrix matrix{};          ///< P + E
  double distance = 0;            ///< sum_ij |A_ij - X_ij|
  std::vector<int64_t> starts{};  ///< first row of each bar, ascending
};

/// The member of a family that is nearest to a map in the sum of absolute differences. A usage error where an
/// option is out of range, and where num_pos bars of height w do not fit.
NearestMap nearest_map(const SquareMatrix& map, const FamilyOptions& options);

/// The distance of a map to the nearest band matrix for w = 0..max_width, without E: the mass outside.
/// Never grows with w.
std::vector<double> band_distances(const SquareMatrix& map, int64_t max_width);

}  // namespace heed
