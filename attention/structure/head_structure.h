// The structure of a head's map: its nearest structured maps, and uniform, identity and zero matrices.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/structure/map_families.h"
#include "heed/attention/structure/random_search.h"

namespace heed {

/// The matrices that a map is compared with.
struct StructureOptions {
  int64_t width = 3;       ///< w of the band and of the bars
  int64_t num_pos = 2;     ///< number of bars
  double dropout = 0;      ///< share of a row's band that is zero, as in FamilyOptions
  double eps = 0;          ///< largest absolute value of an error
  int64_t errors = 1;      ///< largest number of errors in a row
  int64_t max_width = 32;  ///< largest w of the sweep
  /// Draws of the random search, per family and setting; 0: no search. The thesis has 30.
  int64_t search_draws = 0;
  uint64_t seed = 1;  ///< seed of the random search
};

/// The largest map that is analysed: singular values take n^3 operations.
inline constexpr int64_t max_structured_size = 512;

/// A matrix X that a map A is compared with, and its distances from the map.
struct ComparedMatrix {
  std::string name;       ///< "diagonal", "band", "bars", "search", "zero", "uniform", "identity"
  double entrywise = 0;   ///< sum_ij |A_ij - X_ij|
  double mean_error = 0;  ///< entrywise / n^2: the "mean error" of the thesis
  double frobenius = 0;   ///< Frobenius norm of A - X
  double spectral = 0;    ///< largest singular value of A - X
  int64_t rank = 0;       ///< rank of X
  std::string note{};     ///< starts of the bars, or the family that the search found
};

/// The structure of one head.
struct HeadStructure {
  int64_t size = 0;                        ///< n: number of queries and of keys
  double mass = 0;                         ///< sum_ij |A_ij|: the distance to the zero matrix
  double min_row_sum = 0;                  ///< smallest row sum: 1 without dropout and band
  double max_row_sum = 0;                  ///< largest row sum
  double frobenius = 0;                    ///< Frobenius norm of the map
  double spectral = 0;                     ///< largest singular value of the map
  int64_t rank = 0;                        ///< rank of the map
  std::vector<ComparedMatrix> matrices{};  ///< nearest members, then search, zero, uniform, identity
  std::vector<double> sweep{};             ///< band_distances() for w = 0..max_width, at most n - 1

  /// The matrix of this name; Fault::usage where it is not among them.
  const ComparedMatrix& of(const std::string& name) const;
  /// The least entry-wise distance of the three families.
  double nearest() const;
};

/// Compares a map. `stream` is a different number for each head of a random search. Families that do not fit
/// the map (bars in a short sentence) are left out. Fault::data where a weight is not finite, a usage error
/// for a map above max_structured_size.
HeadStructure head_structure(const SquareMatrix& map, const StructureOptions& options, uint64_t stream = 0);

/// The means of a head's numbers over several maps of equal or different size; matrices that not all have are
/// left out, and a sweep is as long as the shortest. Notes stay only where there is one map.
HeadStructure mean_structure(const std::vector<HeadStructure>& maps);

}  // namespace heed
