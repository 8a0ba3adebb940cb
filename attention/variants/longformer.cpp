// Longformer: a sliding window, plus a few global tokens that attend to all and that all attend to. Beltagy
// et al. 2020, "Longformer: the long-document Transformer", arXiv 2004.05150, section 3.
//
//   i local:   a_i = softmax over |i - j| <= w e, (i - j) mod e = 0, and the global j, of q_i . k_j / sqrt(d)
//   i global:  a_i = softmax over all j of q'_i . k'_j / sqrt(d),  y_i = sum_j a_ij v'_j
//
// The first g tokens are global, or those at positions that are listed; a global key within the window counts
// once. Positions count from the first token of each sequence, padded or packed, and a sequence that ends
// before a position does not have that token. A decoder has no global tokens, caches the last w e keys, and
// equals `window` of that width.
//
// Parameters: query_global, key_global, value_global: the projections of global queries q' and of their keys
// k' and values v' (not in a decoder), initialised as copies of query, key and value. Optional inputs of one
// call, before qk_norm and rope, instead of these projections: global_queries [B, H, g, D] in the order of
// their positions, global_keys
// [B, H, N, D], global_values [B, H, N, Dv] (keys and values may have fewer heads). In on_heads() without
// them, q' = q, k' = k, v' = v.
#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "heed/attention/base/grouped_query.h"
#include "heed/attention/base/patterned_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/io/number_text.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

struct LongformerOptions {
  int64_t window = 64, dilation = 1, dilated_heads = 0;
  std::string global = "1";
  double scale = 0;
  void fields(Fields& f) {
    f("window", window, {0, max_distance}, "w, number of keys to either side of a local query");
    f("global", global,
      "g, how many tokens at the start are global, or their positions with / between, counted from 0: 0/5, "
      "5/; "
      "a decoder has none");
    f("dilation", dilation, {1, max_distance}, "e, the distance between keys of a window");
    f("dilated_heads", dilated_heads, {0, max_width}, "how many heads, the last ones, are dilated; 0: all");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

/// Positions begin <= i < end.
struct PositionRun {
  int64_t begin = 0, end = 0;
};

/// The runs of global positions, ascending and apart, that the option `global` gives.
std::vector<PositionRun> global_runs(const std::string& global) {
  const auto number = [&](std::string_view digits) {
    const std::optional<int64_t> value = parsed_integer(std::string(digits));
    if (!value || *value < 0 || *value > max_distance)
      fail("attention 'longformer': global = ", shown(global), ". It must be a number of tokens, 0 to ",
           max_distance, ", or positions from 0 on with / between, such as 0/5, or 5/ for one of them.");
    return *value;
  };
  if (global.find('/') == std::string::npos) {
    const int64_t count = number(global);
    return count == 0 ? std::vector<PositionRun>() : std::vector<PositionRun>{{0, count}};
  }
  std::set<int64_t> positions;
  std::string_view rest = global;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/'), rest.size());
    positions.insert(number(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::vector<PositionRun> runs;
  for (const int64_t position : positions) {
    if (!runs.empty() && runs.back().end == position)
      ++runs.back().end;
    else
      runs.push_back({position, position + 1});
  }
  return runs;
}

/// A layer with the weight of another one, and a bias of its own if that one has a bias.
Linear copy_of(const Linear& layer, Rng& rng) {
  Linear copy(layer.weight.extent(1), layer.weight.extent(0), rng, {.bias = bool(layer.bias)});
  launch<kernel::Copy>(copy.weight.device(), layer.weight.detach(), copy.weight.detach());
  return copy;
}

class Longformer final : public PatternedAttention {
 public:
  Longformer(const AttentionConfig& config, const LongformerOptions& o, Rng& rng)
      : PatternedAttention(config, rng, o.scale), options_(o) {
    if (o.dilated_heads < 0 || o.dilated_heads > config.heads) {
      fail("attention 'longformer': dilated_heads = ", o.dilated_heads, ". There are ", config.heads,
           " heads.");
    }
    const std::vector<PositionRun> runs = global_runs(o.global);  // fails where it must
    if (!config.causal) global_ = runs;
    if (global_.empty()) return;
    query_global = copy_of(query, rng);
    key_global = copy_of(key, rng);
    value_global = copy_of(value, rng);
  }
  void fields(Fields& f) override {
    PatternedAttention::fields(f);
    if (global_.empty()) return;
    f("query_global", query_global);
    f("key_global", key_global);
    f("value_global", value_global);
    f("global_queries", global_queries_);
    f("global_keys", global_keys_);
    f("global_values", global_values_);
  }

  Linear query_global, key_global, value_global;

 private:
  bool heads_share_pattern() const override { return options_.dilation == 1 || options_.dilated_heads == 0; }

  void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const override {
    for (const PositionRun& run : global_) {
      if (i >= run.begin && i < run.end) return;  // global queries are computed separately
    }
    for (const PositionRun& run : global_) out.add_range(run.begin, run.end);
    const bool is_dilated = options_.dilated_heads == 0 || head >= config().heads - options_.dilated_heads;
    const int64_t e = is_dilated ? options_.dilation : 1;
    if (e == 1) return out.add_range(i - options_.window, i + options_.window + 1);
    const int64_t last = std::min(i + options_.window * e, length - 1);
    for (int64_t j = i - std::min(options_.window, i / e) * e; j <= last; j += e) out.add(j);
  }
  int64_t window() const override { return global_.empty() ? options_.window * options_.dilation : -1; }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    if (global_.empty()) return PatternedAttention::attend(std::move(heads), input);
    refuse_bias(input, "a sparse pattern");
    if (input.mask.is_causal())
      fail(
          "attention 'longformer': global tokens attend to later ones. Use it without a causal mask, or "
          "global=0.");
    const int64_t first_query = read_cache(heads, input);
    if (input.cache != nullptr)
      fail(
          "attention 'longformer': global tokens attend to all keys, so it has no cache. Give all keys in "
          "one call.");
    const int64_t queries = heads.q.extent(2);
    const std::vector<PositionRun> runs = runs_within(queries);
    // A call that is too short for any global token computes one row of theirs and takes none of it.
    const Heads global = global_heads(heads, input, runs.empty() ? std::vector<PositionRun>{{0, 1}} : runs);
    // Rows of global queries in place of those of local queries, which are computed for all queries.
    const auto joined = [&](const Tensor& of_global, const Tensor& of_all) {
      std::vector<Tensor> parts;
      int64_t num_taken = 0, behind = 0;  // rows of of_global, and where the last run ends
      for (const PositionRun& run : runs) {
        if (run.begin > behind) parts.push_back(slice(of_all, 2, behind, run.begin));
        parts.push_back(slice(of_global, 2, num_taken, num_taken + run.end - run.begin));
        num_taken += run.end - run.begin;
        behind = run.end;
      }
      // Empty parts stay, so that the output depends on all projections.
      if (runs.empty()) parts.push_back(slice(of_global, 2, 0, 0));
      parts.push_back(slice(of_all, 2, behind, queries));
      return concat(parts, 2);
    };
    record_map(input, [&] {
      return joined(softmax_map(global.q, global.k, scale(global.q), input.mask, 0),
                    dense_map(heads, input, first_query));
    });
    const Tensor y = attend_pattern(heads, input, first_query);
    kernel::AttentionParams call = params(input, scale(global.q));
    call.key_lengths = input.mask.key_lengths();
    return joined(attention(global.q, global.k, global.v, call), y);
  }

  /// The runs of global positions below `length`.
  std::vector<PositionRun> runs_within(int64_t length) const {
    std::vector<PositionRun> out;
    for (const PositionRun& run : global_) {
      if (run.begin < length) out.push_back({run.begin, std::min(run.end, length)});
    }
    return out;
  }

  /// The rows of x at the positions of the runs, along an axis.
  static Tensor rows_of(const Tensor& x, int64_t axis, const std::vector<PositionRun>& runs) {
    std::vector<Tensor> parts;
    for (const PositionRun& run : runs) parts.push_back(slice(x, axis, run.begin, run.end));
    return parts.size() == 1 ? parts[0] : concat(parts, axis);
  }

  /// Global queries [B, H, g, D], normalised and rotated by their positions.
  Tensor modified_queries(const Tensor& q, const std::vector<PositionRun>& runs) const {
    std::vector<Tensor> parts;
    int64_t num_taken = 0;
    for (const PositionRun& run : runs) {
      const int64_t end = num_taken + run.end - run.begin;
      parts.push_back(modifiers().normalize_and_rotate_query(
          runs.size() == 1 ? q : slice(q, 2, num_taken, end), run.begin));
      num_taken = end;
    }
    return parts.size() == 1 ? parts[0] : concat(parts, 2);
  }

  /// Heads of global attention: the queries of the runs, and all keys and values.
  Heads global_heads(const Heads& heads, const AttentionInput& input,
                     const std::vector<PositionRun>& runs) const {
    const bool has_input = input.queries && input.keys;  // without it, the heads of on_heads() are used
    int64_t n = 0;
    for (const PositionRun& run : runs) n += run.end - run.begin;
    Heads global;
    if (const Tensor q = given_tensor(global_queries_, "global_queries", heads.q, n))
      global.q = modified_queries(q, runs);
    else if (has_input)
      global.q = modified_queries(projected(query_global, rows_of(input.queries, 1, runs)), runs);
    else
      global.q = rows_of(heads.q, 2, runs);
    if (const Tensor k = given_tensor(global_keys_, "global_keys", heads.k, heads.k.extent(2)))
      global.k = modifiers().normalize_and_rotate_key(k, 0);
    else
      global.k =
          has_input ? modifiers().normalize_and_rotate_key(projected(key_global, input.keys), 0) : heads.k;
    global.v = given_tensor(global_values_, "global_values", heads.v, heads.v.extent(2));
    if (!global.v) global.v = has_input ? projected(value_global, input.keys) : heads.v;
    global.k = repeat_heads(global.k, global.q.extent(1));
    global.v = repeat_heads(global.v, global.q.extent(1));
    return global;
  }

  /// A tensor that the user gave for the field `name`, with `rows` rows like those of x; empty when not
  /// given.
  static Tensor given_tensor(const Tensor& tensor, const char* name, const Tensor& x, int64_t rows) {
    if (!tensor) return {};
    Shape required = x.shape();
    required[2] = rows;
    Shape shape = tensor.shape();
    const bool has_fewer_heads = shape.rank() == 4 && shape[1] > 0 && required[1] % shape[1] == 0;
    if (has_fewer_heads) shape[1] = required[1];
    if (shape != required)
      fail("attention 'longformer': ", name, " is ", tensor.shape(), "; it must be ", required,
           ", or of fewer heads that divide these.");
    return tensor;
  }

  LongformerOptions options_;
  std::vector<PositionRun> global_;  // empty in a decoder
  Tensor global_queries_, global_keys_, global_values_;
};

}  // namespace

Variant variant::longformer() {
  return describe<Longformer, LongformerOptions>(
      like(sparse_pattern_traits,
           {.name = "longformer",
            .paper = "Beltagy et al. 2020",
            .summary = "A sliding window, and a few tokens that attend to all and that all attend to."}));
}

}  // namespace heed
