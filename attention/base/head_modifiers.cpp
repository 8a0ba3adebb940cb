// Applies rope, query-key norm, alibi, t5, shaw, softcap and sink.
#include "heed/attention/base/head_modifiers.h"

#include <algorithm>
#include <cmath>

#include "heed/core/constant_table.h"

namespace heed {

std::vector<double> alibi_slopes(int64_t heads) {
  const auto slope = [](int64_t h, int64_t power) {
    return std::exp2(-8 * static_cast<double>(h) / static_cast<double>(power));
  };
  int64_t lower_power = 1;
  while (lower_power * 2 <= heads) lower_power *= 2;
  std::vector<double> slopes;
  for (int64_t h = 1; h <= lower_power; ++h) slopes.push_back(slope(h, lower_power));
  for (int64_t h = 1; static_cast<int64_t>(slopes.size()) < heads; h += 2)
    slopes.push_back(slope(h, 2 * lower_power));
  return slopes;
}

int64_t t5_bucket(int64_t distance, bool causal, int64_t buckets, int64_t span) {
  // Bidirectional attention has half of the buckets for later keys.
  int64_t first_bucket = 0, magnitude = std::max<int64_t>(-distance, 0);
  if (!causal) {
    buckets /= 2;
    if (distance > 0) first_bucket = buckets;
    magnitude = std::abs(distance);
  }
  const int64_t num_exact = buckets / 2;
  if (magnitude < num_exact) return first_bucket + magnitude;
  if (num_exact == 0) return first_bucket;
  const double fraction = std::log(static_cast<double>(magnitude) / static_cast<double>(num_exact)) /
                          std::log(static_cast<double>(span) / static_cast<double>(num_exact));
  const auto logarithmic = static_cast<int64_t>(fraction * static_cast<double>(buckets - num_exact));
  return first_bucket + std::min(num_exact + logarithmic, buckets - 1);
}

HeadModifiers::HeadModifiers(const AttentionConfig& config, Rng& rng)
    : modifiers_(config.modifiers), heads_(config.heads), causal_(config.causal) {
  const int64_t d = config.width_of_head();
  const Modifiers& m = modifiers_;
  if (is_rotary(m.position) && d % 2 != 0) {
    fail("attention: rope rotates pairs, but a head is ", d, " wide (width ", config.d_model, ", ",
         config.heads, " heads). Choose heads of an even width.");
  }
  if (m.qk_norm == QkNorm::rms) {
    query_gain_ = constant_parameter(Shape{d}, 1);
    key_gain_ = constant_parameter(Shape{d}, 1);
  } else if (m.qk_norm == QkNorm::l2) {
    // With gain d, initial scores are as large as with rms: d cos / sqrt(d) = sqrt(d) cos.
    query_gain_ = constant_parameter(Shape{config.heads, 1, 1}, static_cast<double>(d));
  }
  if (m.position == PositionKind::t5)
    position_bias_ = normal_parameter(Shape{m.position_buckets, config.heads}, 0.02, rng);
  const Shape by_distance{2 * m.position_span + 1, d};
  const bool has_values = m.position == PositionKind::shaw;
  if (has_values || m.position == PositionKind::shaw_keys)
    position_vectors_ = normal_parameter(by_distance, 0.02, rng);
  if (has_values) value_vectors_ = normal_parameter(by_distance, 0.02, rng);
  if (m.sink == Sink::learned) sink_ = constant_parameter(Shape{config.heads}, 0);
}

void HeadModifiers::fields(Fields& f) {
  // An empty field would be listed as a tensor that users may give, so only parameters that exist are named.
  const auto name_if_present = [&f](const char* name, Tensor& tensor) {
    if (tensor) f(name, tensor);
  };
  name_if_present("query_gain", query_gain_);
  name_if_present("key_gain", key_gain_);
  name_if_present("position_bias", position_bias_);
  name_if_present("position_vectors", position_vectors_);
  name_if_present("value_vectors", value_vectors_);
  name_if_present("sink", sink_);
}

Tensor HeadModifiers::normalised(const Tensor& x, const Tensor& gain) const {
  if (modifiers_.qk_norm == QkNorm::none) return x;
  const bool to_unit_length = modifiers_.qk_norm == QkNorm::l2;
  const Tensor y = x / sqrt((to_unit_length ? sum(square(x), 3) : mean(square(x), 3)) + 1e-6);
  return gain ? y * gain : y;
}

Tensor HeadModifiers::rotated(const Tensor& x, int64_t first, const Packing* packing) const {
  if (!is_rotary(modifiers_.position)) return x;
  const auto pairs = modifiers_.position == PositionKind::rope ? kernel::RotaryPairs::halves
                                                               : kernel::RotaryPairs::neighbours;
  return angles_.rotated(x, first, packing, modifiers_.position_base, pairs);
}

bool HeadModifiers::acts_on_scores() const {
  return by_distance(modifiers_.position) || modifiers_.softcap > 0 || modifiers_.sink != Sink::none;
}

Tensor HeadModifiers::distance_bias(const Tensor& q, int64_t queries, int64_t keys,
                                    int64_t first_query) const {
  const int64_t num_entries = queries + keys - 1;
  const auto distance = [&](int64_t entry) { return keys - 1 - first_query - entry; };  // key minus query
  if (modifiers_.position == PositionKind::alibi) {
    const std::vector<double> slopes = alibi_slopes(heads_);
    std::vector<double> values;
    for (int64_t h = 0; h < heads_; ++h) {
      for (int64_t n = 0; n < num_entries; ++n)
        values.push_back(-slopes[static_cast<size_t>(h)] * static_cast<double>(std::abs(distance(n))));
    }
    return constant_table<double>(values, Shape{heads_, num_entries}, q.device(), q.dtype());
  }
  if (!position_bias_) return {};
  std::vector<int32_t> buckets;
  for (int64_t n = 0; n < num_entries; ++n) {
    buckets.push_back(static_cast<int32_t>(
        t5_bucket(distance(n), causal_, modifiers_.position_buckets, modifiers_.position_span)));
  }
  const Tensor ids = constant_table<int32_t>(buckets, Shape{num_entries}, q.device());
  return contiguous(transpose(embedding(position_bias_, ids), 0, 1));
}

/// The vectors of all distances as rows [Tq + Tk, d]: row Tq - 1 - i + j is for query i and key j.
Tensor HeadModifiers::vectors_by_distance(const Tensor& vectors, int64_t queries, int64_t keys,
                                          int64_t first_query) const {
  const int64_t span = modifiers_.position_span, num_rows = queries + keys;
  std::vector<int32_t> rows;
  for (int64_t n = 0; n < num_rows; ++n) {
    const int64_t distance = n - (queries - 1) - first_query;  // key minus query
    rows.push_back(static_cast<int32_t>(std::clamp(distance, -span, span) + span));
  }
  return embedding(vectors, constant_table<int32_t>(rows, Shape{num_rows}, vectors.device()));
}

/// q_i . vector(j - i) / sqrt(d) for all pairs: [B, H, Tq, Tk].
Tensor HeadModifiers::position_vector_scores(const Tensor& q, int64_t keys, int64_t first_query) const {
  const int64_t b = q.extent(0), h = q.extent(1), queries = q.extent(2), width = queries + keys;
  const Tensor vectors = vectors_by_distance(position_vectors_, queries, keys, first_query);
  const Tensor by_distance = matmul(q, transpose(vectors, 0, 1));  // [B, H, Tq, width]
  // The scores of row i start at column Tq - 1 - i. To align them, skip Tq - 1 numbers and read rows shorter
  // by one.
  const Tensor flat =
      slice(reshape(by_distance, Shape{b, h, queries * width}), 2, queries - 1, queries * width - 1);
  const Tensor aligned = slice(reshape(flat, Shape{b, h, queries, width - 1}), 3, 0, keys);
  return aligned * (1 / std::sqrt(static_cast<double>(q.extent(3))));
}

Tensor HeadModifiers::value_vector_term(const Tensor& map, const Tensor& v, int64_t first_query) const {
  if (!value_vectors_) return {};
  if (v.extent(3) != value_vectors_.extent(1)) {
    fail("attention: values are ", v.extent(3), " wide, and the vectors that shaw adds to them ",
         value_vectors_.extent(1), ". Give values of that width, or use shaw_keys.");
  }
  const int64_t b = map.extent(0), h = map.extent(1), queries = map.extent(2), keys = map.extent(3),
                width = queries + keys;
  // Reads rows longer by one, so that row i starts at column Tq - 1 - i: the inverse of the alignment in
  // position_vector_scores().
  const auto zero_columns = [&](int64_t columns, Shape shape) {
    shape[-1] = columns;
    return Tensor::zeros(shape, map.dtype(), map.device());
  };
  const Tensor rows = concat(std::vector<Tensor>{map, zero_columns(queries - 1, map.shape())}, 3);
  const Tensor flat = reshape(rows, Shape{b, h, queries * (width - 1)});
  const Tensor by_distance = concat(
      std::vector<Tensor>{zero_columns(queries - 1, flat.shape()), flat, zero_columns(1, flat.shape())}, 2);
  return matmul(reshape(by_distance, Shape{b, h, queries, width}),
                vectors_by_distance(value_vectors_, queries, keys, first_query));
}

Tensor HeadModifiers::modified_scores(const Tensor& plain, const Tensor& q, int64_t first_query) const {
  const int64_t queries = plain.extent(2), keys = plain.extent(3);
  Tensor out = plain;
  if (position_vectors_) out = out + position_vector_scores(q, keys, first_query);
  if (modifiers_.softcap > 0) out = tanh(out * (1 / modifiers_.softcap)) * modifiers_.softcap;
  if (const Tensor by_distance = distance_bias(q, queries, keys, first_query)) {
    std::vector<int32_t> entries;
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t j = 0; j < keys; ++j) entries.push_back(static_cast<int32_t>(i - j + keys - 1));
    }
    const Tensor ids = constant_table<int32_t>(entries, Shape{queries, keys}, q.device());
    const Tensor by_pair = embedding(contiguous(transpose(by_distance, 0, 1)), ids);  // [Tq, Tk, H]
    out = out + permute(by_pair, {2, 0, 1});
  }
  return out;
}

Tensor HeadModifiers::sink(const Tensor& q) const {
  if (modifiers_.sink == Sink::zero) return Tensor::full(Shape{heads_}, 0, q.dtype(), q.device());
  return sink_;
}

Tensor HeadModifiers::with_sink(const Tensor& weights, const Tensor& scores) const {
  const Tensor logit = sink(scores);
  if (!logit) return weights;
  const int64_t keys = scores.extent(3);
  Shape column = scores.shape();
  column[3] = 1;
  const Tensor sink_scores = expand(reshape(logit, Shape{1, heads_, 1, 1}), column);
  const Tensor shares = softmax(concat(std::vector<Tensor>{scores, sink_scores}, 3));
  return weights * affine(slice(shares, 3, keys, keys + 1), -1, 1);  // times 1 - the sink's share
}

}  // namespace heed
