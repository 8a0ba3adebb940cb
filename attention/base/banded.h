// What maps with a band have in common: softmax's share of it, products with bands, sparse places elsewhere.
#pragma once

#include <memory>

#include "attention/scored.h"

namespace heed {

namespace kernel {
struct Pattern;
}

/// u8 [Tq, Tk] for scores [B, H, Tq, Tk] whose first query stands at `first`: 1 where |i - j| <= width.
Tensor band_of(const Tensor& scores, int64_t first, int64_t width);
/// The other pairs.
Tensor outside_band(const Tensor& scores, int64_t first, int64_t width);
/// i32 [1, 1, n]: places of a row-major L x L matrix, n = density L^2 of them (density 0: L; at least one),
/// none twice, none on the diagonal, ascending; empty where there is but the diagonal. Fails for a density
/// that is no share, and where L is 0: it is not known.
Tensor sparse_places(const char* name, int64_t longest, double density, Rng& rng);
/// Fails when `length` tokens come where a matrix was made for `longest`.
void check_longest(const char* name, int64_t length, int64_t longest);

/// What a call looks at: queries first_query <= i < first_query + queries, keys first_key <= j < first_key +
/// keys.
struct Sight {
  int64_t first_query = 0, queries = 0, first_key = 0, keys = 0;
  bool causal = false;  ///< no key after its query
  bool operator==(const Sight&) const = default;
};

/// Some of a matrix's places, as numbers of queries and keys of a call.
struct SeenPlaces {
  std::vector<int32_t> which, queries, keys;  ///< `which`: their numbers among all places
};
/// Places of a row-major L x L matrix that `sight` has, within |i - j| <= width or outside of it.
SeenPlaces seen_places(const std::vector<int64_t>& places, int64_t longest, const Sight& sight, int64_t width,
                       bool within);
/// Numbers of rows for take_rows() and put_rows(), the same for all heads: i32 [1, 1, n].
Tensor row_ids(const std::vector<int32_t>& ids, Device device);

/// Rows of a band times values: y_i = sum over |i - j| <= w of band[i, j - i + w] v_j, in time and memory
/// that follow the band. band [1|B, H, Tq, 2 w + 1], v [B, H, keys, dv]; keys that are not there count as
/// zeros.
Tensor band_product(const Tensor& band, const Tensor& v, const Sight& sight);

/// The band of the map of softmax over all keys, and what a variant adds elsewhere. No map is made unless a
/// bias or a modifier acts on scores: the band is attended to by itself, and the share of it is e^(log of its
/// sum less log of all keys' sum).
class BandedAttention : public ScoredAttention {
 public:
  /// `scale` multiplies the scores; 0: 1 / sqrt(d).
  BandedAttention(const AttentionConfig& config, Rng& rng, int64_t width, double scale);

 protected:
  Tensor score(const Tensor& q, const Tensor& k, const Attend& call) const final;
  Tensor attend(Heads heads, const Attend& call) final;
  /// Sums over the band as softmax of it gives them, instead of their share.
  virtual bool renormalised() const { return false; }
  /// What keys outside the band add to [B, H, Tq, dv]; lse [B, H, Tq, 1] is the log of each row's sum of
  /// exponentials, without -inf. Padded keys and values are zero. Empty: nothing.
  virtual Tensor elsewhere(const Heads& heads, const Tensor& lse, const Attend& call,
                           const Sight& sight) const;

  int64_t band_width() const { return width_; }
  double scale(const Tensor& q) const;

 private:
  std::shared_ptr<const kernel::Pattern> pattern(const Sight& sight) const;

  int64_t width_;
  double scale_;
  mutable std::shared_ptr<const kernel::Pattern> last_;  // of the sight asked for last
  mutable Sight last_sight_;
};

}  // namespace heed
