// Every differentiable op. Shapes of two operands broadcast as in NumPy.
#pragma once

#include <span>
#include <vector>

#include "heed/autograd/tape.h"
#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/attention/local_attention.h"
#include "heed/core/kernels/attention/ntm_addressing.h"
#include "heed/core/kernels/attention/pattern_attention.h"
#include "heed/core/kernels/attention/rotary.h"
#include "heed/core/kernels/content/tree_attention.h"
#include "heed/core/kernels/linear_attention/decay_scan.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"
#include "heed/core/kernels/norm/layer_norm.h"
#include "heed/core/random.h"

namespace heed {

// Arithmetic.
Tensor operator+(const Tensor& a, const Tensor& b);  ///< elementwise sum, broadcast
Tensor operator-(const Tensor& a, const Tensor& b);  ///< elementwise difference, broadcast
Tensor operator*(const Tensor& a, const Tensor& b);  ///< elementwise product, broadcast
/// Elementwise quotient, broadcast; IEEE: x / 0 is inf or nan.
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);  ///< where equal, the gradient goes to a
Tensor minimum(const Tensor& a, const Tensor& b);  ///< where equal, the gradient goes to a
Tensor maximum(const Tensor& x, double limit);     ///< max(x, limit); where equal, x gets the gradient
Tensor minimum(const Tensor& x, double limit);     ///< min(x, limit); where equal, x gets the gradient
Tensor affine(const Tensor& x, double scale, double shift);  ///< scale x + shift
Tensor operator-(const Tensor& x);                           ///< -x
Tensor operator+(const Tensor& x, double c);                 ///< x + c
Tensor operator-(const Tensor& x, double c);                 ///< x - c
Tensor operator*(const Tensor& x, double c);                 ///< c x
Tensor operator*(double c, const Tensor& x);                 ///< c x
Tensor operator/(const Tensor& x, double c);                 ///< x times 1 / c
Tensor operator+(double c, const Tensor& x);                 ///< c + x
Tensor operator-(double c, const Tensor& x);                 ///< c - x
Tensor operator/(double c, const Tensor& x);                 ///< c / x
/// x^exponent; NaN for a negative x and an exponent that is not whole.
Tensor pow(const Tensor& x, double exponent);
/// x where `mask` (u8, broadcast) is not zero, `otherwise` elsewhere.
Tensor where(const Tensor& mask, const Tensor& x, double otherwise);
/// x where `mask` (u8) is not zero, y elsewhere; all three broadcast.
Tensor where(const Tensor& mask, const Tensor& x, const Tensor& y);

// A new result under the old name, recorded as any other: no numbers are changed in place.
inline Tensor& operator+=(Tensor& x, const Tensor& y) { return x = x + y; }  ///< x = x + y
inline Tensor& operator-=(Tensor& x, const Tensor& y) { return x = x - y; }  ///< x = x - y
inline Tensor& operator*=(Tensor& x, const Tensor& y) { return x = x * y; }  ///< x = x y
inline Tensor& operator/=(Tensor& x, const Tensor& y) { return x = x / y; }  ///< x = x / y
inline Tensor& operator+=(Tensor& x, double c) { return x = x + c; }         ///< x = x + c
inline Tensor& operator-=(Tensor& x, double c) { return x = x - c; }         ///< x = x - c
inline Tensor& operator*=(Tensor& x, double c) { return x = x * c; }         ///< x = c x
inline Tensor& operator/=(Tensor& x, double c) { return x = x / c; }         ///< x = x / c

// Functions of one element.
Tensor exp(const Tensor& x);         ///< e^x
Tensor log(const Tensor& x);         ///< natural logarithm; -inf at 0, nan below
Tensor tanh(const Tensor& x);        ///< hyperbolic tangent
Tensor sigmoid(const Tensor& x);     ///< 1 / (1 + e^-x)
Tensor relu(const Tensor& x);        ///< max(x, 0); the gradient at 0 is 0
Tensor gelu(const Tensor& x);        ///< by the error function
Tensor gelu_tanh(const Tensor& x);   ///< GPT-2's form
Tensor silu(const Tensor& x);        ///< x sigmoid(x)
Tensor elu(const Tensor& x);         ///< x above 0, e^x - 1 elsewhere
Tensor softplus(const Tensor& x);    ///< log(1 + e^x)
Tensor sin(const Tensor& x);         ///< sine of x in radians
Tensor cos(const Tensor& x);         ///< cosine of x in radians
Tensor square(const Tensor& x);      ///< x^2
Tensor sqrt(const Tensor& x);        ///< root; nan below 0
Tensor reciprocal(const Tensor& x);  ///< 1 / x
Tensor abs(const Tensor& x);         ///< |x|; the gradient at 0 is 0

// Shape. Views share numbers; reshape and concat copy where they must.
Tensor reshape(const Tensor& x, const Shape& shape);      ///< one extent may be -1
Tensor transpose(const Tensor& x, int64_t a, int64_t b);  ///< swaps two axes; a view
/// Axis i of the result is axis axes[i] of x; a view.
Tensor permute(const Tensor& x, std::initializer_list<int64_t> axes);
/// Indices begin <= i < end of an axis; a view. Fails unless 0 <= begin <= end <= its extent: a negative end
/// does not count from the end as in Python, so write x.extent(axis) - 1 for "all but the last".
Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end);
/// Repeats axes of extent 1 and adds leading axes; a view.
Tensor expand(const Tensor& x, const Shape& shape);
/// Index `index` of an axis, which goes; negative ones count from the end. A view; x[i] is select(x, 0, i).
Tensor select(const Tensor& x, int64_t axis, int64_t index);
/// The parts one after the other along `axis`; their other extents must be equal.
Tensor concat(std::span<const Tensor> parts, int64_t axis);
/// concat() of tensors that are named: concat({a, b}, 1).
inline Tensor concat(std::initializer_list<Tensor> parts, int64_t axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}
/// The parts, of one shape, along a new axis: n parts [T, d] along axis 0 make [n, T, d].
Tensor stack(std::span<const Tensor> parts, int64_t axis);
/// x [T, ...] as T tensors [...] that share one gradient buffer: the steps of a loop over time.
std::vector<Tensor> unstack(const Tensor& x);
Tensor contiguous(const Tensor& x);         ///< x itself where it is dense, else a copy
Tensor cast(const Tensor& x, DType dtype);  ///< converted elements; the gradient is converted back

// Products.
Tensor matmul(const Tensor& a,
              const Tensor& b);  ///< [..., M, K] [..., K, N] -> [..., M, N], batch axes broadcast
/// x W^T + bias: x [..., in], weight [out, in], bias [out] or empty -> [..., out]. x and the result may be
/// activations of bf16 where the parameters are f32: sums are f32, rounded once.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
/// linear() with a result of f32 or bf16, whatever x is.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType result);
/// linear(x, weights[i], biases[i]) for every i, in one product: weights [out_i, in], biases [out_i] or all
/// empty. The results [..., out_i] are views of one tensor [..., sum of out_i], and so are their gradients
/// where an op writes them so; `result` is their dtype, as in linear(). Weights that lie one behind the
/// other, as an optimizer puts them, are read in place.
std::vector<Tensor> linear_each(const Tensor& x, std::span<const Tensor> weights,
                                std::span<const Tensor> biases, DType result);
/// linear(gelu_tanh(linear(x, up, up_bias)), down, down_bias): up [hidden, in], down [out, hidden]; biases
/// may be empty. A GPU fuses GELU, its gradient and the gradients of biases into the products.
Tensor feed_forward(const Tensor& x, const Tensor& up, const Tensor& up_bias, const Tensor& down,
                    const Tensor& down_bias);

// Reductions.
Tensor sum(const Tensor& x);                 ///< sum of all elements, rank 0
Tensor mean(const Tensor& x);                ///< mean of all elements, rank 0
Tensor sum(const Tensor& x, int64_t axis);   ///< the axis stays, with extent 1
Tensor mean(const Tensor& x, int64_t axis);  ///< the axis stays, with extent 1
Tensor max(const Tensor& x, int64_t axis);   ///< the axis stays; the gradient goes to the first largest
Tensor min(const Tensor& x, int64_t axis);   ///< the axis stays; the gradient goes to the first least
/// log of the sum of e^x, the axis stays; -inf for a row of -inf, whose gradient is 0.
Tensor log_sum_exp(const Tensor& x, int64_t axis);
Tensor sum_to(const Tensor& x, const Shape& shape);    ///< sums over broadcast axes: the gradient of expand()
Tensor cumulative_sum(const Tensor& x, int64_t axis);  ///< y_t = x_0 + ... + x_t along the axis
/// sum over j <= t of exp(x_j - max_t) for each row t of x [B, H, T, f], column by column. `running_max`
/// receives max_t = max over j <= t of x_j, which gets no gradient.
Tensor cumulative_exp_sum(const Tensor& x, Tensor& running_max);

// Rows.
Tensor softmax(const Tensor& x);      ///< softmax over the last axis; a row of -inf gives zeros
Tensor log_softmax(const Tensor& x);  ///< log softmax over the last axis
/// gain (x - mean) / deviation + bias over the last axis; bias may be empty.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon = 1e-5,
                  kernel::NormScale scale = kernel::NormScale::variance);
/// gain x / sqrt(mean of x^2 + epsilon) over the last axis: layer_norm() without mean and bias (Zhang and
/// Sennrich 2019, arXiv 1910.07467).
Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon = 1e-5);
/// Mean cross entropy of logits [..., V] at targets (i32, [...]) in nats, with label smoothing; targets equal
/// to `ignore` do not count.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double smoothing = 0, int32_t ignore = -1);
/// cross_entropy(linear(x, weight, bias), targets, smoothing, ignore) of x [..., in], weight [V, in] and bias
/// [V] or empty, without storing the logits of all N rows: those of `chunk_rows` rows exist at a time, and
/// the gradients are computed along with them, to be scaled by the backward pass (Hsu et al. 2024, arXiv
/// 2410.10989). 0 rows: 4,194,304 / V and at least 512, on a GPU 16,777,216 / V and at least 1,024, and the
/// two ops themselves, with their bits, where N is not above that. x may be bf16 as in linear(); logits, loss
/// and sums are f32.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                            double smoothing = 0, int32_t ignore = -1, int64_t chunk_rows = 0);
/// Rows of weight [V, d] at ids (i32 [...]) -> [..., d].
Tensor embedding(const Tensor& weight, const Tensor& ids);
/// Rows of x [B, H, T, d] at ids (i32 [B, H, n]; B or H may be 1, then shared) -> [B, H, n, d]. An id of -1
/// gives zeros.
Tensor gather_rows(const Tensor& x, const Tensor& ids);
/// x at `index` (i32) along an axis, as torch.gather: x and index have one shape but for that axis, and the
/// result has that of index. An index of -1 gives 0.
Tensor gather(const Tensor& x, int64_t axis, const Tensor& index);
/// The transpose of gather_rows(): rows x [B, H, n, d] summed at their ids -> [B, H, length, d]; id -1 is
/// skipped.
Tensor scatter_add_rows(const Tensor& x, const Tensor& ids, int64_t length);
/// Packed sequences x [1, N, W] as padded rows [B, T, W], zeros behind each sequence; T is the length of the
/// longest. `batch` above 0: only so many of the sequences.
Tensor pad_packed(const Tensor& x, const PackedSequences& sequences, int64_t batch = 0);
/// The reverse: padded rows x [B, T, W] as packed sequences [1, rows, W]. Rows past those of the B sequences
/// are zeros.
Tensor pack_padded(const Tensor& x, const PackedSequences& sequences, int64_t rows);
/// The sum of the rows of each of the packed sequences x [1, N, W] -> [B, W]; of `step` B sequences only
/// those of numbers 0, step, 2 step, ...
Tensor sum_sequences(const Tensor& x, const PackedSequences& sequences, int64_t step = 1);
/// Row t of a table [L, W] added to row t of each of the packed sequences x [1, N, W]. x may be bf16 over a
/// table of f32. Rows that belong to no sequence are undefined. Fails where the longest sequence has more
/// than L rows.
Tensor add_positions(const Tensor& x, const Tensor& table, const PackedSequences& sequences);
/// Means of `count` equal segments of each sequence: x [B, H, T, d] -> [B, H, count, d]. `lengths` and
/// `counts` (the number of segments of each sequence) are i32 [B] or empty, as in kernel::SegmentMean.
Tensor segment_mean(const Tensor& x, int64_t count, const Tensor& lengths, const Tensor& counts);
/// Zeroes elements with probability p and scales the rest by 1 / (1 - p); x itself when rng is null or p is
/// 0. `places` of packed sequences x [1, N, W]: the mask is that of the padded rows.
Tensor dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places = {});
/// narrowed(dropout(x)) in one kernel; x itself where dropout() is x.
Tensor narrowed_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places = {});
/// dropout(relu(x)) in one pass, without storing the undropped numbers; so the next three.
Tensor relu_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places = {});
/// dropout(gelu(x)).
Tensor gelu_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places = {});
/// dropout(gelu_tanh(x)).
Tensor gelu_tanh_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places = {});
/// dropout(silu(x)).
Tensor silu_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places = {});
/// x + dropout(branch) in one pass; x and branch have one shape.
Tensor add_dropout(const Tensor& x, const Tensor& branch, double p, Rng* rng,
                   const PaddedPlaces& places = {});
/// A sum of the residual stream, and its layer norm.
struct NormalisedSum {
  Tensor sum;         ///< x + dropout(branch)
  Tensor normalised;  ///< layer_norm(sum)
};
/// add_dropout() and the layer_norm() of the sum in one pass. Arguments are as there.
NormalisedSum add_dropout_norm(const Tensor& x, const Tensor& branch, double p, Rng* rng,
                               const PaddedPlaces& places, const Tensor& gain, const Tensor& bias,
                               double epsilon = 1e-5, kernel::NormScale scale = kernel::NormScale::variance);

/// y[b, t, c] = sum_j weight[c, j] x[b, t + j - before, c], each channel by its own k taps along the
/// sequence: x [B, T, C], weight [C, k] -> [B, T, C]. `before` is k - 1 if `causal`, so that the last tap is
/// at the position itself, and (k - 1) / 2 rounded down otherwise. Positions beyond the ends are zeros.
Tensor depthwise_convolution(const Tensor& x, const Tensor& weight, bool causal);

// Recurrence. Shapes as in core/kernels/elementwise/recurrent_cell.h: gates from the input and from the
// state, [N, 4|3 D], and a state [2|1, N, D]; where `lengths` (i32 [N]) is not above `position`, the state
// stays.
/// One step of an LSTM: gates [N, 4 D], state [2, N, D] of h and c -> the next state.
Tensor lstm_cell(const Tensor& from_input, const Tensor& from_state, const Tensor& state,
                 const Tensor& lengths = {}, int64_t position = 0);
/// One step of a GRU: gates [N, 3 D], state [1, N, D] -> the next state.
Tensor gru_cell(const Tensor& from_input, const Tensor& from_state, const Tensor& state,
                const Tensor& lengths = {}, int64_t position = 0);

// Fused attention. Shapes as in core/kernels/attention/attention.h.
/// softmax(scale q k^T + bias) v under the mask of `params`, without storing the map: q [B, H, Tq, d], k [B,
/// Hk, Tk, d], v [B, Hk, Tk, dv] -> [B, H, Tq, dv].
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const kernel::AttentionParams& params);
/// attention() with the log-sum-exp of each row as last column: [B, H, Tq, dv + 1]. It is -inf for a row
/// without keys, whose gradient must be zero.
Tensor attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& v,
                           const kernel::AttentionParams& params);
/// attention() to the keys of a sparse pattern alone.
Tensor pattern_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                         const kernel::PatternParams& params);
/// pattern_attention() with the log-sum-exp of each row as last column: [B, H, Tq, dv + 1].
Tensor pattern_attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const kernel::PatternParams& params);
/// units . tanh(left_i + right_j) for each pair: left [B, H, Tq, A], right [B, H, Tk, A], units [H, A] ->
/// [B, H, Tq, Tk]. The tanh is computed again in the backward pass.
Tensor additive_scores(const Tensor& left, const Tensor& right, const Tensor& units);
/// Attention to the keys near `centre` [B, H, Tq]: see core/kernels/attention/local_attention.h.
Tensor local_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                       const kernel::LocalParams& params);
/// Gate, shift and sharpen weights by content [B, H, Tq, Tk], query after query. Shapes, and what may be
/// empty, as in core/kernels/attention/ntm_addressing.h.
struct AddressingSteps {
  Tensor before;  ///< weights of the query before
  Tensor gate;    ///< g of the interpolation with them
  Tensor shift;   ///< weights of the rotation
  Tensor sharp;   ///< exponent of the sharpening
};
/// The weights [B, H, Tq, Tk] of all queries. Graves et al. 2014, arXiv 1410.5401, section 3.3.
Tensor ntm_addressing(const Tensor& content, const AddressingSteps& steps,
                      const kernel::AddressingParams& params);
/// Causal sums with decay, or the delta rule: see core/kernels/linear_attention/decay_scan.h. Returns
/// [B, H, T, d]; with keep_end [B, H, T + f, d]: the outputs, then the f rows of the final state.
Tensor decay_scan(const kernel::DecayInputs& x, bool keep_end);
/// Rotates pairs of elements of x [B, H, T, d] by the angles in table [T, n]: see
/// core/kernels/attention/rotary.h. The table gets no gradient.
Tensor rotary(const Tensor& x, const Tensor& table, kernel::RotaryPairs pairs);
/// Attention over the buds of a tree of keys: see core/kernels/content/tree_attention.h. Node sums that
/// `params` lacks are computed from k and v.
Tensor tree_attention(const Tensor& q, const Tensor& k, const Tensor& v, kernel::TreeParams params);
/// Attention whose weights are a polynomial of q . k: see
/// core/kernels/linear_attention/polynomial_attention.h. `start` [B, H, f, dv + 1] (or empty) holds the sums
/// over earlier keys; with it, k and v may be empty.
Tensor polynomial_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                            const kernel::PolynomialParams& params, const Tensor& start = {});
/// The state of polynomial_attention(): sums over keys of monomials times [v, 1], [B, H, f, dv + 1].
Tensor polynomial_sums(const Tensor& k, const Tensor& v, const kernel::PolynomialParams& params);

}  // namespace heed
