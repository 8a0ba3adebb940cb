// cosFormer: linear attention with ReLU features, reweighted by the cosine of the distance. Qin et al. 2022,
// "cosFormer: rethinking softmax in attention", arXiv 2202.08791.
//
//   a_ij = relu(q_i) . relu(k_j) cos( pi (i - j) / (2 M) ),      M the longest input
//
// The cosine of a difference is a sum of products, so the map factors with features [relu(x) cos, relu(x)
// sin]. Weights are never negative and decrease with distance. Rows are divided by their sum.
#include <cmath>

#include "heed/attention/base/kernelized_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"

namespace heed {
namespace {

struct CosformerOptions {
  int64_t length = 0;
  double epsilon = 1e-6;
  void fields(Fields& f) {
    f("length", length, {0, max_distance},
      "M; 0: the model's max_length, or the length of the call where it is unknown");
    f("epsilon", epsilon, "added to the sum of weights");
  }
};

class CosformerAttention final : public KernelizedAttention {
 public:
  CosformerAttention(const AttentionConfig& config, const CosformerOptions& o, Rng& rng)
      : KernelizedAttention(config, o.epsilon, rng), length_(o.length > 0 ? o.length : config.max_length) {}

 private:
  Heads features(Heads heads, const AttentionInput& input) const override {
    const int64_t queries = heads.q.extent(2), keys = heads.k ? heads.k.extent(2) : 0;
    int64_t length = length_;
    if (length < 1 && input.cache != nullptr)
      fail("attention 'cosformer': the length of the input is unknown when decoding. Give length=N.");
    if (length < 1) length = std::max(queries, keys);
    const int64_t first_key = input.cache != nullptr ? input.cache->length : 0;
    const int64_t first_query = first_query_position(heads, input);
    if (first_query < 0 || std::max(first_query + queries, first_key + keys) > length) {
      fail("attention 'cosformer': position ", std::max(first_query + queries, first_key + keys),
           " of an input of at most ", length, " positions. Give length=N.");
    }
    heads.q = with_angles(relu(heads.q), first_query, length);
    if (heads.k) heads.k = with_angles(relu(heads.k), first_key, length);
    return heads;
  }

  /// Features [x cos, x sin] of rows with positions from `first` on: [B, H, T, d] -> [B, H, T, 2 d].
  static Tensor with_angles(const Tensor& x, int64_t first, int64_t length) {
    std::vector<double> cosines, sines;
    for (int64_t i = first; i < first + x.extent(2); ++i) {
      const double angle = std::acos(0.0) * static_cast<double>(i) / static_cast<double>(length);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
    const auto column = [&](const std::vector<double>& values) {
      return constant_table<double>(values, Shape{1, 1, x.extent(2), 1}, x.device(), x.dtype());
    };
    return concat(std::vector<Tensor>{x * column(cosines), x * column(sines)}, 3);
  }

  int64_t length_;
};

}  // namespace

Variant variant::cosformer() {
  return describe<CosformerAttention, CosformerOptions>(
      like(feature_map_traits,
           {.name = "cosformer",
            .paper = "Qin et al. 2022",
            .summary = "Products of ReLU features that decrease with the cosine of the distance.",
            .map = MapKind::signed_}));
}

}  // namespace heed
