// BandedAttention: softmax restricted to a band around the diagonal, plus a term that a variant adds outside
// it.
#pragma once

#include "heed/attention/base/patterned_attention.h"

namespace heed {

/// The band as u8 [Tq, Tk] for scores [B, H, Tq, Tk] whose first query is at position `first`: 1 where
/// |i - j| <= width.
Tensor band_mask(const Tensor& scores, int64_t first, int64_t width);
/// The complement of the band as u8 [Tq, Tk]: 1 where |i - j| > width.
Tensor outside_band_mask(const Tensor& scores, int64_t first, int64_t width);
/// Random off-diagonal positions of a row-major L x L matrix, L = `max_length`: i32 [1, 1, n], distinct and
/// ascending, with n = density L^2 (at least 1; density 0: n = L). Empty for L = 1. Fails when the density is
/// not in [0, 1] and when L is unknown (0) or above 46340.
Tensor random_positions(const char* name, int64_t max_length, double density, Rng& rng);
/// Fails when `length` exceeds `max_length`, the number of rows of a variant's matrix.
void check_max_length(const char* name, int64_t length, int64_t max_length);

/// The queries and keys of a call: positions first_query <= i < first_query + queries and first_key <= j <
/// first_key + keys.
struct KeyRange {
  int64_t first_query = 0;  ///< position of row 0 of the queries
  int64_t queries = 0;      ///< number of queries
  int64_t first_key = 0;    ///< position of row 0 of the keys
  int64_t keys = 0;         ///< number of keys
  bool causal = false;      ///< no query attends to a later key
};

/// The positions of a sparse matrix that lie within a call, as row indices of its queries and keys.
struct VisiblePositions {
  std::vector<int32_t> indices;  ///< indices into the list of all positions
  std::vector<int32_t> queries;  ///< row of each position's query in this call
  std::vector<int32_t> keys;     ///< row of each position's key in this call
};
/// The side of the band |i - j| <= width on which positions lie.
enum class BandSide { inside, outside };
/// Those of `positions`, of a row-major L x L matrix with L = `max_length`, that lie in `key_range` and on
/// this side of the band; when causal, without those of j > i.
VisiblePositions visible_positions(const std::vector<int64_t>& positions, int64_t max_length,
                                   const KeyRange& key_range, int64_t width, BandSide side);
/// Row indices for gather_rows() and scatter_add_rows(), shared by batch and heads: i32 [1, 1, n].
Tensor row_indices(const std::vector<int32_t>& ids, Device device);

/// Banded matrix times values: y_i = sum over |i - j| <= w of band[i, j - i + w] v_j, in time and memory
/// proportional to the band. band [1|B, H, Tq, 2 w + 1], v [B, H, keys, dv] -> [B, H, Tq, dv]; missing keys
/// count as zeros. With a generator, dropout of rate `dropout_rate` drops entries of the band, drawn anew for
/// each sequence.
Tensor band_product(const Tensor& band, const Tensor& v, const KeyRange& key_range, double dropout_rate = 0,
                    Rng* rng = nullptr);

/// The band of the softmax over all keys, plus a term that a variant adds outside it. No Tq x Tk map is
/// computed unless a bias or a modifier acts on scores: the softmax over the band is multiplied by the band's
/// share exp(lse_band - lse_all).
class BandedAttention : public PatternedAttention {
 public:
  /// `scale` multiplies the scores; 0: 1 / sqrt(d).
  BandedAttention(const AttentionConfig& config, Rng& rng, int64_t width, double scale)
      : PatternedAttention(config, rng, scale), width_(width) {}
  bool modifies_scores() const override { return true; }

 protected:
  void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const final;
  Tensor attend(Heads heads, const AttentionInput& input) final;
  /// True for the softmax over the band alone, not multiplied by its share.
  virtual bool is_renormalised() const { return false; }
  /// The contribution [B, H, Tq, dv] of keys outside the band; empty: none. lse [B, H, Tq, 1]: log-sum-exp of
  /// each row over all keys, -1e30 or above. Padded keys and values are zero.
  virtual Tensor outside_term(const Heads& heads, const Tensor& lse, const AttentionInput& input,
                              const KeyRange& key_range) const;

  int64_t band_width() const { return width_; }  ///< w: the band is |i - j| <= w

 private:
  int64_t width_;
};

}  // namespace heed
