// BandedAttention: softmax restricted to a band around the diagonal, plus what a variant adds outside it.
#pragma once

#include "heed/attention/base/scored.h"
#include "heed/core/parallel/recent_values.h"

namespace heed {

namespace kernel {
struct Pattern;
}

/// The band as u8 [Tq, Tk] for scores [B, H, Tq, Tk] whose first query is at position `first`: 1 where
/// |i - j| <= width.
Tensor band_of(const Tensor& scores, int64_t first, int64_t width);
/// Its complement: 1 where |i - j| > width.
Tensor outside_band(const Tensor& scores, int64_t first, int64_t width);
/// Random off-diagonal positions of a row-major L x L matrix, L = `longest`: i32 [1, 1, n], distinct and
/// ascending, with n = density L^2 (at least 1; density 0: n = L). Empty for L = 1. Fails when the density is
/// not in [0, 1] and when L is unknown (0) or above 46340.
Tensor sparse_places(const char* name, int64_t longest, double density, Rng& rng);
/// Fails when `length` exceeds `longest`, the length that a matrix was made for.
void check_longest(const char* name, int64_t length, int64_t longest);

/// The queries and keys of a call: positions first_query <= i < first_query + queries and first_key <= j <
/// first_key + keys.
struct KeyRange {
  int64_t first_query = 0;  ///< position of row 0 of the queries
  int64_t queries = 0;      ///< number of queries
  int64_t first_key = 0;    ///< position of row 0 of the keys
  int64_t keys = 0;         ///< number of keys
  bool causal = false;      ///< no query attends to a later key
  /// All five fields are equal, so that the pattern of one call serves the next.
  bool operator==(const KeyRange&) const = default;
};

/// Sparse matrix positions within a call: row indices of queries and of keys.
struct SeenPlaces {
  std::vector<int32_t> which;    ///< indices into all positions
  std::vector<int32_t> queries;  ///< row of each position's query in this call
  std::vector<int32_t> keys;     ///< row of its key
};
/// The positions of a row-major L x L matrix that lie in `key_range`, inside the band |i - j| <= width or
/// outside it; causal: without j > i.
SeenPlaces seen_places(const std::vector<int64_t>& places, int64_t longest, const KeyRange& key_range,
                       int64_t width, bool within);
/// Row indices for gather_rows() and scatter_add_rows(), shared by batch and heads: i32 [1, 1, n].
Tensor row_ids(const std::vector<int32_t>& ids, Device device);

/// Banded matrix times values: y_i = sum over |i - j| <= w of band[i, j - i + w] v_j, in time and memory
/// proportional to the band. band [1|B, H, Tq, 2 w + 1], v [B, H, keys, dv] -> [B, H, Tq, dv]; missing keys
/// count as zeros. With a generator, dropout of rate `rate` drops entries of the band, others in each
/// sequence.
Tensor band_product(const Tensor& band, const Tensor& v, const KeyRange& key_range, double rate = 0,
                    Rng* rng = nullptr);

/// The band of the softmax over all keys, plus what a variant adds outside it. No Tq x Tk map is computed
/// unless a bias or a modifier acts on scores: the band is attended to alone, and its output is multiplied by
/// the band's share exp(lse_band - lse_all).
class BandedAttention : public ScoredAttention {
 public:
  /// `scale` multiplies the scores; 0: 1 / sqrt(d).
  BandedAttention(const AttentionConfig& config, Rng& rng, int64_t width, double scale);

 protected:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput& input) const final;
  Tensor attend(Heads heads, const AttentionInput& input) final;
  /// True: softmax over the band alone, not multiplied by its share.
  virtual bool renormalised() const { return false; }
  /// The contribution [B, H, Tq, dv] of keys outside the band; empty: none. lse [B, H, Tq, 1]: log-sum-exp of
  /// each row over all keys, -1e30 or above. Padded keys and values are zero.
  virtual Tensor elsewhere(const Heads& heads, const Tensor& lse, const AttentionInput& input,
                           const KeyRange& key_range) const;

  int64_t band_width() const { return width_; }  ///< w: the band is |i - j| <= w
  double scale(const Tensor& q) const;  ///< 1 / sqrt(d) for q [B, H, Tq, d], the factor of the dot products

 private:
  kernel::Pattern make_pattern(const KeyRange& key_range) const;

  int64_t width_;
  double scale_;
  RecentValues<KeyRange, kernel::Pattern> patterns_;
};

}  // namespace heed
