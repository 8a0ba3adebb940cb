// Nystromformer: approximates the softmax map from landmarks, means of segments. Xiong et al. 2021,
// "Nystromformer: a Nystrom-based algorithm for approximating self-attention", arXiv 2102.03902, equations 13
// to 15.
//
//   Y = softmax(Q K~^T s) A+ softmax(Q~ K^T s) V,      A = softmax(Q~ K~^T s),  s = 1 / sqrt(d)
//
// Q~ and K~ are m landmarks: means of m segments of the queries and keys without padding; segment sizes
// differ by at most one. A+ is the pseudo-inverse, computed by `iterations` rounds of Z <- Z (13 I - A Z (15
// I - A Z (7 I - A Z))) / 4 from Z = A^T / (largest column sum; rows sum to 1). With as many landmarks as
// positions it is softmax attention. The largest column sum is that of each map; with init=original that of
// all maps of the batch, as in the authors' code (github.com/mlpen/Nystromformer), so that an output depends
// on the other sequences of its batch. With `segment` a landmark is the mean of so many positions at a fixed
// place, padding counted as zeros: there, all inputs are padded to one length. Landmarks that lie in padding
// are zero vectors then, and count.
//
// Parameters: conv [H, kernel], only with kernel > 0: each head adds a convolution of its values over time,
// which starts uniform within +-1 / sqrt(kernel), as PyTorch's.
#include <cmath>
#include <vector>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/support/iterated_inverse.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct NystromformerOptions {
  int64_t landmarks = 64;
  int64_t iterations = 6;
  InverseInit init = InverseInit::exact;
  int64_t kernel = 0;
  int64_t segment = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("landmarks", landmarks, {1, max_width},
      "segments that are averaged; without segment, at most the length");
    f("iterations", iterations, {0, max_rounds}, "rounds of the pseudo-inverse");
    f("init", Choice(init, {"exact", "original"}),
      "its start divides by the largest column sum of each map, or, as the authors' code does, by that of "
      "all maps: an output then depends on the other sequences of its batch");
    f("kernel", kernel, {0, max_rounds - 1}, "width of a convolution of the values, odd; 0: none");
    f("segment", segment, {0, max_width},
      "positions of a segment at a fixed place, as in the authors' code, with padding as zeros, up to "
      "landmarks x segment positions in all; 0: segments are equal shares of the tokens without padding");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class NystromformerAttention final : public MultiHeadAttention {
 public:
  NystromformerAttention(const AttentionConfig& config, const NystromformerOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng),
        landmarks_(o.landmarks),
        iterations_(o.iterations),
        init_(o.init),
        segment_(o.segment),
        scale_(attention_scale(o.scale, head_dim())) {
    if (o.kernel > 0 && o.kernel % 2 == 0) {
      fail("attention 'nystromformer': kernel = ", o.kernel, ". It must be odd, or 0 for none.");
    }
    if (o.kernel > 0 && config.cross) {
      fail(
          "attention 'nystromformer': a convolution of the values needs a query for each value, which "
          "cross-attention lacks. Leave kernel at 0.");
    }
    if (o.kernel > 0)
      conv_ =
          uniform_parameter(Shape{config.heads, o.kernel}, 1 / std::sqrt(static_cast<double>(o.kernel)), rng);
  }

  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("conv", conv_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    refuse_bias_and_cache("nystromformer", input);
    const Tensor kept = input.mask.padding_mask(heads.k, 0);
    if (kept) heads.v = heads.v * kept;
    const Landmarks marks = make_landmarks(heads, input.mask);
    // The column sums of a sequence without keys are 0: it divides by 1.
    const Tensor increment = marks.lengths && kept ? -slice(kept, 2, 0, 1) + 1 : Tensor();
    const Tensor inverse = iterated_inverse(landmark_map(marks), init_, iterations_, increment);
    const kernel::AttentionParams key_params{.scale = scale_, .key_lengths = input.mask.key_lengths()};
    // softmax(Q K~^T s) A+ softmax(Q~ K^T s) `values`; `landmark_params` are those of the first softmax.
    const auto approximated = [&](const Tensor& values, const kernel::AttentionParams& landmark_params) {
      const Tensor landmark_values =
          matmul(inverse, attention(marks.queries, heads.k, values, key_params));  // [B, H, m, d]
      const Tensor y = attention(heads.q, marks.keys, landmark_values, landmark_params);
      return conv_ ? y + convolved(values) : y;
    };
    record_map(input, [&] {
      const Tensor identity = identity_values(heads.k);
      return approximated(kept ? identity * kept : identity, {.scale = scale_, .key_lengths = marks.lengths});
    });
    kernel::AttentionParams landmark_params = params(input, scale_);
    landmark_params.key_lengths = marks.lengths;
    return approximated(heads.v, landmark_params);
  }

  /// Means of segments [B, H, m, d]. A sequence of n < m positions has n landmarks, the first ones; `lengths`
  /// (i32 [B]) holds the numbers of positions, and is empty where all landmarks count.
  struct Landmarks {
    Tensor queries, keys, lengths;
  };

  Landmarks make_landmarks(const Heads& heads, const Mask& mask) const {
    // In self-attention queries are padded like keys. In cross-attention all queries are real, and cut into
    // as many segments as the keys.
    const bool is_cross = config().cross;
    if (segment_ > 0) {
      const Tensor kept = mask.padding_mask(heads.k, 0);
      return {fixed_means(kept && !is_cross ? heads.q * kept : heads.q),
              fixed_means(kept ? heads.k * kept : heads.k),
              {}};
    }
    const int64_t m = std::min({landmarks_, heads.q.extent(2), heads.k.extent(2)});
    const Tensor& lengths = mask.key_lengths();
    return {segment_mean(heads.q, m, is_cross ? Tensor() : lengths, is_cross ? lengths : Tensor()),
            segment_mean(heads.k, m, lengths, {}), lengths};
  }

  /// Means of x [B, H, T, d] with zeros behind it, over segments of a fixed size: [B, H, landmarks, d].
  Tensor fixed_means(const Tensor& x) const {
    const int64_t T = x.extent(2), max_positions = landmarks_ * segment_;
    if (T > max_positions)
      fail("attention 'nystromformer': ", T, " positions do not fit into ", landmarks_, " landmarks of ",
           segment_, ". landmarks x segment must be at least as many.");
    const Tensor full_length =
        T == max_positions ? x : concat(std::vector<Tensor>{x, zero_rows(x, max_positions - T)}, 2);
    return segment_mean(full_length, landmarks_, {}, {});
  }

  /// A = softmax(Q~ K~^T s); zero in rows and columns of landmarks that a sequence does not have.
  Tensor landmark_map(const Landmarks& marks) const {
    // A sequence of n < m positions has n landmarks, so its length masks rows and columns.
    const Mask mask = marks.lengths ? Mask::lengths(marks.lengths) : Mask::none();
    const Tensor map = softmax_map(marks.queries, marks.keys, scale_, mask, 0);
    return marks.lengths ? map * mask.padding_mask(map, 0) : map;
  }

  /// Convolves the values of each head over time, zero-padded: [B, H, T, d] -> [B, H, T, d]. Each chunk of C
  /// positions, with the `halo` positions around it, becomes columns of one matrix product with a Toeplitz
  /// matrix, which takes fewer passes over the values than a sum over taps.
  Tensor convolved(const Tensor& v) const {
    const int64_t B = v.extent(0), H = v.extent(1), T = v.extent(2), d = v.extent(3);
    const int64_t halo = conv_.extent(1) - 1;
    const int64_t C = std::max(halo, std::min<int64_t>(T, 64)), chunks = (T + C - 1) / C;
    const Tensor padded =
        concat(std::vector<Tensor>{zero_rows(v, halo / 2), v, zero_rows(v, (chunks + 1) * C - T - halo / 2)},
               2);  // [B, H, (chunks + 1) C, d]
    const Shape cut{B, H, chunks, C, d};
    Tensor columns = reshape(slice(padded, 2, 0, chunks * C), cut);
    if (halo > 0) {
      const Tensor next = reshape(slice(padded, 2, C, (chunks + 1) * C), cut);
      columns = concat(std::vector<Tensor>{columns, slice(next, 3, 0, halo)}, 3);
    }
    columns = reshape(permute(columns, {1, 3, 0, 2, 4}), Shape{H, C + halo, B * chunks * d});
    const Tensor y = reshape(matmul(toeplitz(C), columns), Shape{H, C, B, chunks, d});
    return slice(reshape(permute(y, {2, 0, 3, 1, 4}), Shape{B, H, chunks * C, d}), 2, 0, T);
  }

  /// The convolution of C positions as a matrix for each head [H, C, C + halo], with the taps in row i from
  /// column i on. To shift each row by one, rows [taps, C zeros], one number longer than those of the matrix,
  /// are read as one sequence.
  Tensor toeplitz(int64_t C) const {
    const int64_t H = conv_.extent(0), width = C + conv_.extent(1) - 1;
    const Tensor row = reshape(
        concat(std::vector<Tensor>{conv_, Tensor::zeros(Shape{H, C}, conv_.dtype(), conv_.device())}, 1),
        Shape{H, 1, width + 1});
    const Tensor rows = reshape(expand(row, Shape{H, C, width + 1}), Shape{H, C * (width + 1)});
    return reshape(slice(rows, 1, 0, C * width), Shape{H, C, width});
  }

  /// Zeros [B, H, rows, d] to join to x [B, H, T, d].
  static Tensor zero_rows(const Tensor& x, int64_t rows) {
    Shape shape = x.shape();
    shape[2] = rows;
    return Tensor::zeros(shape, x.dtype(), x.device());
  }

  int64_t landmarks_, iterations_;
  InverseInit init_;
  int64_t segment_;
  double scale_;
  Tensor conv_;
};

}  // namespace

Variant variant::nystromformer() {
  return describe<NystromformerAttention, NystromformerOptions>(
      {.name = "nystromformer",
       .paper = "Xiong et al. 2021",
       .summary =
           "The map approximated from means of segments of queries and keys, joined by a pseudo-inverse.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .cross = true,
       .map = MapKind::signed_,
       .min_cost_length = 8192,
       .tolerance = 10});  // six rounds approximate the inverse of a nearly singular map
}

}  // namespace heed
