// Attention: the interface that every attention implements, with its input and configuration.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heed/nn/attention_cache.h"
#include "heed/nn/auxiliary_losses.h"
#include "heed/nn/init.h"
#include "heed/nn/map_recorder.h"
#include "heed/nn/mask.h"
#include "heed/nn/position.h"

namespace heed {

struct AttentionInput;

/// Edits a forward pass: weights of attention maps, outputs, keys and values of heads, and what passes
/// between blocks, for ablation, patching and causal tracing (docs/how-to/edit-a-head.md). By default each
/// edit gives back what it gets. Gradients flow through all but edit_map().
class HeadEditor {
 public:
  virtual ~HeadEditor() = default;
  /// The heads of this attention, counted from 0, whose maps edit_map() replaces; none by default. Their
  /// outputs are computed from the map, which the attention must have; other heads keep their outputs.
  virtual std::vector<int64_t> mapped_heads(const Module&) const { return {}; }
  /// The map to use in place of `map` [B, H, Tq, Tk], which has neither dropout nor gradients of its weights.
  /// Called where mapped_heads() names heads; other heads of the result are ignored.
  virtual Tensor edit_map(const Module&, const Tensor& map, const AttentionInput&) { return map; }
  /// The input of the output projection in place of `heads`, the output of all heads [B, H, Tq, d].
  virtual Tensor edit_heads(const Module&, const Tensor& heads, const AttentionInput&) { return heads; }
  /// The keys to use in place of `keys` [B, Hk, Tk, d], normalised and rotated. Called for attentions that
  /// are a MultiHeadAttention.
  virtual Tensor edit_keys(const Module&, const Tensor& keys) { return keys; }
  /// The values to use in place of `values` [B, Hk, Tk, dv]. Called where edit_keys() is.
  virtual Tensor edit_values(const Module&, const Tensor& values) { return values; }
  /// What a block's self-attention reads in place of `x` [B, T, width], behind norm and short convolution.
  virtual Tensor edit_input(const Module&, const Tensor& x) { return x; }
  /// The residual stream in place of `x` [B, T, width] that block `layer` of a stack reads, counted from 0;
  /// with the number of blocks as `layer`, what the last one gives.
  virtual Tensor edit_stream(const Module&, int64_t /*layer*/, const Tensor& x) { return x; }
};

/// State that one forward pass carries through all modules.
struct ForwardContext {
  Rng* rng = nullptr;                 ///< random numbers of dropout and sampling; null when evaluating
  MapRecorder* recorder = nullptr;    ///< receives attention maps; may be null
  AuxiliaryLosses* losses = nullptr;  ///< receives auxiliary losses; may be null
  HeadEditor* editor = nullptr;       ///< edits maps and outputs of heads; may be null
  bool packs = true;                  ///< models compute on packed tokens, without padding, where they can
  /// Packing::table() of the input sequences, for lengths that are not on the CPU; may be empty.
  Tensor packing_table = {};
  /// Packing::table() of a translator's targets; may be empty.
  Tensor target_packing_table = {};
  /// True in training: dropout is on and stochastic attentions sample.
  bool training() const { return rng != nullptr; }
  /// True unless this pass does not pack, or records or edits maps, which are padded.
  bool may_pack() const { return packs && recorder == nullptr && editor == nullptr; }
  /// The packing of packing_table, else Packing::where_padded(); null unless may_pack().
  std::shared_ptr<const Packing> packing(const Tensor& lengths, int64_t padded_length) const;
  /// The packing of target_packing_table, else Packing::of_places() where those leave padding out; null
  /// unless may_pack(). `places` i32 [N] are those of `batch` sequences of `padded_length` tokens.
  std::shared_ptr<const Packing> target_packing(const Tensor& places, int64_t batch,
                                                int64_t padded_length) const;
};

/// The arguments of one call to an attention.
struct AttentionInput {
  Tensor queries = {};  ///< [B, Tq, d_model]; packed [1, N, d_model] where the mask says so
  Tensor keys = {};     ///< [B, Tk, d_model]; `queries` itself for self-attention; empty if cached
  Mask mask = {};       ///< which query may attend to which key
  AttentionCache* cache = nullptr;  ///< keys of earlier calls; `keys` are appended to it
  ForwardContext context = {};      ///< random numbers, recorder and losses of this forward pass
  /// True for self-attention: `keys` are the tensor `queries`.
  bool keys_are_queries() const;
};

/// Replaces the keys of a call by Mask::finite_padding() of them and, unless `cross` (keys are another
/// sequence), its queries too. Attentions compute with this input, so nothing in padding reaches a real
/// output.
AttentionInput with_finite_padding(const AttentionInput& input, bool cross);

/// The call with padded rows in place of packed queries and keys.
AttentionInput padded_input(const AttentionInput& input);

/// The cache of a call as a `Kind`, the type that its attention creates; null when the call has no cache.
/// Fails for a cache of another attention.
template <class Kind>
Kind* cache_of(const AttentionInput& input) {
  auto* cache = dynamic_cast<Kind*>(input.cache);
  if (input.cache != nullptr && cache == nullptr)
    fail("attention: this cache belongs to another attention. Use the one from new_cache().");
  return cache;
}

/// Base class of all attentions. Rung 4 of the ladder, the most general: override forward(). Without
/// training, several threads may call it at once, each with a cache of its own.
class Attention : public Module {
 public:
  virtual Tensor forward(const AttentionInput& input) = 0;  ///< [B, Tq, width]
  /// An empty cache; null when this attention cannot decode step by step.
  virtual std::unique_ptr<AttentionCache> new_cache() const { return nullptr; }
  /// True where forward() takes the packed queries and keys of this call; for others attend() pads them.
  virtual bool takes_packed(const AttentionInput&) const { return false; }
  /// True where forward() takes queries and keys in bf16 and returns the dtype of the queries; for others
  /// attend() gives f32.
  virtual bool takes_bf16() const { return false; }
};

/// attention.forward(input), with padded rows made and packed again where the input is packed and the
/// attention does not take that, and the same for inputs in bf16. Models call attentions so.
Tensor attend(Attention& attention, const AttentionInput& input);

/// Normalisation of queries and keys before their dot product. rms: by their root mean square, with a gain
/// per element (as in Qwen 3); l2: to unit length, with a gain per head (Henry et al. 2020).
enum class QkNorm { none, rms, l2 };

/// An extra score in the softmax of each row, without a value: 0 ("softmax off by one") or trained.
enum class Sink { none, zero, learned };

/// Options that combine with most attentions. make_attention() fails where one would have no effect.
struct Modifiers {
  PositionKind position = PositionKind::none;  ///< a kind that acts inside attention, or none
  double position_base = 10000;   ///< rope: pair i of d / 2 rotates by base^(-2 i / d) per position
  int64_t position_buckets = 32;  ///< t5: number of distance buckets
  int64_t position_span = 128;    ///< t5: distances >= this share a bucket; shaw: a vector
  QkNorm qk_norm = QkNorm::none;  ///< before the dot product of queries and keys
  double softcap = 0;             ///< scores s become softcap tanh(s / softcap); 0: off
  Sink sink = Sink::none;         ///< an extra score in each row
};

/// Tensors that the layers of one stack share, by name: the first layer that needs one creates it.
struct SharedByLayers {
  std::map<std::string, Tensor> tensors;  ///< each is created by the first layer that needs it
};

/// Configuration that a model passes to the attention it creates: sizes, place in the model, initialisation.
struct AttentionConfig {
  int64_t d_model = 0;       ///< width of the inputs and of the output
  int64_t heads = 1;         ///< query heads; divide d_model unless head_dim is given
  int64_t kv_heads = 0;      ///< key-value heads, each shared by a group of query heads; 0: as many as heads
  int64_t head_dim = 0;      ///< width of the queries, keys and values of one head; 0: d_model / heads
  bool causal = false;       ///< part of a decoder: no query attends to later keys
  bool cross = false;        ///< keys come from another sequence
  int64_t max_length = 0;    ///< the longest input; 0: unknown
  int64_t layer = 0;         ///< index of the layer, from 0
  int64_t layers = 1;        ///< number of layers
  double dropout = 0;        ///< on the attention weights
  bool query_bias = false;   ///< the query projection adds a bias, and so does a gate of the queries' input
  bool key_bias = false;     ///< the key projection adds a bias
  bool value_bias = false;   ///< the value projection adds a bias
  bool output_bias = false;  ///< the output projection adds a bias
  Init init = Init::xavier;  ///< initialisation of the projections' weights
  double output_gain = 1;    ///< multiplies the output projection's initial weights
  Modifiers modifiers = {};  ///< position kind, qk_norm, softcap, sink
  /// Tensors that the self-attentions, or the cross-attentions, of all layers share; empty: none.
  std::shared_ptr<SharedByLayers> shared = {};
  std::string name = {};            ///< name of the variant, for errors; make_attention() sets it
  bool follows_causal_mask = true;  ///< false: a call with one fails; make_attention() sets Traits::causal

  /// head_dim, or d_model / heads where that is 0.
  int64_t width_of_head() const { return head_dim > 0 ? head_dim : d_model / std::max<int64_t>(heads, 1); }
  /// Width of all heads concatenated.
  int64_t inner_width() const { return heads * width_of_head(); }
};

/// Creates an attention, so that models need not know the variants.
using AttentionFactory = std::function<std::unique_ptr<Attention>(const AttentionConfig&, Rng&)>;

/// Sets the parameters query.weight, key.weight and value.weight of an attention, where they exist, to the
/// identity matrix. Fails when none exists and when one is not square.
void set_identity_projections(Attention& attention);

}  // namespace heed
