// The random search of Conti 2024: draws structured matrices and keeps the nearest to a map.
//
// The thesis says that tables 6 and 7 are made from 30 random matrices of each family. Its notebook draws 30
// for each of 1,331 settings of three coefficients in 0, 0.1, ..., 1: about 120,000 candidates a head. This
// search draws as many, with another random number generator.
#pragma once

#include <cstdint>

#include "heed/attention/structure/map_families.h"

namespace heed {

/// Size of the search and parameters of the candidates.
struct SearchOptions {
  int64_t width = 3;    ///< w of bands and bars
  int64_t num_pos = 2;  ///< number of bars
  int64_t draws = 30;   ///< candidates of each family for each setting of the coefficients
  int64_t grid = 11;    ///< values of each coefficient, from 0 to 1
  uint64_t seed = 1;    ///< equal seeds give equal candidates
  uint64_t stream = 0;  ///< a different number for each head of one search
};

/// The nearest candidate of a search.
struct SearchResult {
  SquareMatrix matrix{};               ///< rows sum to 1
  double distance = 0;                 ///< sum_ij |A_ij - X_ij|; infinite where no candidate was usable
  MapFamily family = MapFamily::band;  ///< family of the nearest candidate
  int64_t candidates = 0;              ///< number of candidates drawn, unusable ones included
};

/// The nearest of draws * grid^3 candidates of each family to a map. Fails where an option is out of range
/// and where the bars do not fit.
SearchResult random_search(const SquareMatrix& map, const SearchOptions& options);

/// Draws members of the families as the notebook of the thesis does. Every matrix is divided by its row sums;
/// a row of zeros becomes NaN, and such a candidate is to be left out.
class MapGenerator {
 public:
  /// Draws from this stream of the seed.
  MapGenerator(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  /// Values of 0.9 to 1 on the diagonal, plus noise of size `noise`.
  SquareMatrix diagonal(int64_t size, double noise);
  /// Each entry of the band is kept with probability 0.6, with a value of 0.7 to 1; plus noise of size
  /// `noise`.
  SquareMatrix band(int64_t size, int64_t width, double noise);
  /// Values of 0.7 to 1, times `weight`, on the diagonal; those of the rows of num_pos bars of height `width`
  /// move into the column of the bar; plus noise of size 0.5.
  SquareMatrix bars(int64_t size, int64_t num_pos, int64_t width, double weight);

 private:
  double uniform();              ///< a number in [0, 1)
  int64_t below(int64_t count);  ///< a whole number in [0, count)
  /// Adds noise of 0 to `size` to n random entries of a map [n, n], but to none on the diagonal.
  void add_noise(SquareMatrix& map, double size);

  uint64_t seed_, stream_, counter_ = 0;
  uint32_t words_[4] = {};  // words of the last Philox block
  int num_unused_words_ = 0;
};

}  // namespace heed
