// Attention: the interface that every attention implements, with its input, cache and configuration.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"
#include "heed/nn/mask.h"
#include "heed/nn/module.h"
#include "heed/nn/position.h"

namespace heed {

/// What an attention keeps between the steps of decoding: the key-value cache, or the state of a linear
/// attention. Lists its tensors ([B, ...]) in fields(), so that moving, reordering beams and detaching are
/// generic.
struct AttentionCache {
  int64_t length = 0;   ///< number of cached keys
  int64_t queries = 0;  ///< number of queries answered so far: the position of the next one
  virtual ~AttentionCache() = default;
  virtual void fields(Fields& f) = 0;  ///< names every tensor whose rows are sequences, [B, ...]
};

/// Row i of every cached tensor becomes row order[i], as beam search reorders its hypotheses. order: i32
/// [B'].
void reorder(AttentionCache& cache, const Tensor& order);

/// Collects attention maps [B, H, Tq, Tk], each with the module that made it. Recording never changes an
/// output.
struct MapRecorder {
  /// The map of one call of one attention.
  struct Map {
    const Module* module;  ///< the attention that made it; names_of() knows its path
    Tensor weights;        ///< weights [B, H, Tq, Tk], without history
    Tensor drawn = {};     ///< of hard attentions: 1 at the sampled keys, 0 elsewhere
  };
  /// What the heads of one call worked with, without history; kept while keep_heads is set.
  struct HeadCall {
    const Module* module;       ///< the attention that was called
    Tensor values = {};         ///< [B, H or fewer, Tk, dv]
    Tensor output = {};         ///< [B, H, Tq, dv]: of each head, before the output projection
    Tensor output_grad = {};    ///< a leaf of zeros added to `output`: after backward(), grad_of() it is the
                                ///< gradient of the heads' outputs; empty under NoGrad
    Tensor query_factors = {};  ///< [B, H, Tq, d]: their products with key_factors, times `scale`, are scores
    Tensor key_factors = {};    ///< [B, H or fewer, Tk, d]; both empty where a score is no product
    double scale = 1;           ///< of the products
  };
  /// Called by attentions; keeps the numbers without their history.
  void record(const Module& module, const Tensor& map, const Tensor& drawn = {}) {
    maps.push_back({&module, map.detach(), drawn ? drawn.detach() : Tensor()});
  }
  /// Called by attentions inside a call that is kept: the queries and keys whose products it weighs by.
  void factors(const Module& module, const Tensor& queries, const Tensor& keys, double scale) {
    if (calls.empty() || calls.back().module != &module) return;
    calls.back().query_factors = queries.detach();
    calls.back().key_factors = keys.detach();
    calls.back().scale = scale;
  }
  std::vector<Map> maps;    ///< in the order of the forward pass
  bool keep_heads = false;  ///< keep `calls` too, of attentions with heads that are called without a cache
  std::vector<HeadCall> calls;  ///< in the order of the forward pass
};

struct AttentionInput;

/// Edits attentions in a forward pass: weights of their maps, or outputs of their heads. For ablation,
/// patching and causal tracing (docs/how-to/edit-a-head.md). A pass without one takes the same path as ever.
class HeadEditor {
 public:
  virtual ~HeadEditor() = default;
  /// Heads of this attention, from 0, whose maps edit_map() replaces; none by default. They are computed from
  /// the map, which the attention must have; the others stay as they are.
  virtual std::vector<int64_t> mapped_heads(const Module&) const { return {}; }
  /// The map to use in place of `map` [B, H, Tq, Tk], as a MapRecorder gets it: without dropout, and without
  /// gradients of its weights. Called where mapped_heads() names heads; the others are ignored.
  virtual Tensor edit_map(const Module&, const Tensor& map, const AttentionInput&) { return map; }
  /// What the output projection reads in place of `heads`, the output of all heads [B, H, Tq, d]. Gradients
  /// flow through it.
  virtual Tensor edit_heads(const Module&, const Tensor& heads, const AttentionInput&) { return heads; }
};

/// How likely a model finds the targets of a batch, for auxiliary losses that depend on it.
struct Likelihood {
  Tensor of_sequences;  ///< [B], nats: log p of the targets of each sequence, without history
  Tensor weight;        ///< rank 0: what the loss is a mean over, tokens or examples of the batch
  Tensor real;          ///< [B]: 1; 0 for a sequence without targets, which only fills the batch up
};

/// Terms that attentions add to the loss, such as those of stochastic attention or routing. The training step
/// adds sum() to the loss of the task.
struct AuxiliaryLosses {
  /// A term of rank 0, from how likely the targets were.
  using FromLikelihood = std::function<Tensor(const Likelihood&)>;

  /// Adds a term of rank 0, in the unit of the loss.
  void add(const char* name, const Tensor& term) { list.emplace_back(name, term); }
  /// Adds a term that resolve() computes once the likelihood is known.
  void add(const char* name, FromLikelihood make) { waiting.emplace_back(name, std::move(make)); }
  /// Computes the waiting terms. The task calls it; see resolve_auxiliary_losses().
  void resolve(const Likelihood& likelihood);
  /// The sum of all terms; empty when there are none. Fails when some still wait for a likelihood.
  Tensor sum() const;

  std::vector<std::pair<std::string, Tensor>> list;             ///< name and value of each term
  std::vector<std::pair<std::string, FromLikelihood>> waiting;  ///< names of terms that wait for resolve()
  bool dry_run = false;  ///< true in a step whose result is thrown away: modules must not update their state
};

/// Resolves waiting terms with the likelihood of `targets` (i32 [B, ...]) under `logits` [B, ..., V]; targets
/// equal to `ignore` do not count. Does nothing when no term waits.
void resolve_auxiliary_losses(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                              int32_t ignore = -1);
/// The same for logits [N, V] and targets [N] of concatenated sequences: `rows` holds the length of each.
void resolve_auxiliary_losses(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                              std::span<const int64_t> rows, int32_t ignore = -1);

/// The same where an example is `parts` sequences of a batch [parts * B]: first the first part of all
/// examples, then the second. Each sequence gets the likelihood of its example.
void resolve_auxiliary_losses_of_parts(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                                       int64_t parts);

/// What one forward pass carries through all modules.
struct ForwardContext {
  Rng* rng = nullptr;                 ///< random numbers of dropout and sampling; null when evaluating
  MapRecorder* recorder = nullptr;    ///< receives attention maps; may be null
  AuxiliaryLosses* losses = nullptr;  ///< receives auxiliary losses; may be null
  HeadEditor* editor = nullptr;       ///< edits maps and outputs of heads; may be null
  /// True in training: dropout is on and stochastic attentions sample.
  bool training() const { return rng != nullptr; }
};

/// The arguments of one call to an attention.
struct AttentionInput {
  Tensor queries = {};  ///< [B, Tq, d_model]
  Tensor keys = {};     ///< [B, Tk, d_model]; `queries` itself for self-attention; empty if cached
  Mask mask = {};       ///< which query may attend to which key
  AttentionCache* cache = nullptr;  ///< keys of earlier calls; `keys` are appended to it
  ForwardContext context = {};      ///< random numbers, recorder and losses of this forward pass
};

/// Replaces the keys of a call by Mask::finite_padding() of them and, unless `cross` (keys are another
/// sequence), its queries too. Attentions compute with this input, so nothing in padding reaches a real
/// output.
AttentionInput with_finite_padding(const AttentionInput& input, bool cross);

/// The cache of a call as the type that its attention makes; null without one. Fails for a cache of another
/// attention.
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
};

/// Normalisation of queries and keys before their dot product: by their root mean square, with a gain per
/// element (as in Qwen 3), or to unit length, with a gain per head (Henry et al. 2020).
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
  std::map<std::string, Tensor> tensors;  ///< created by the first layer that asks for a name
};

/// What a model passes to the attention it creates: sizes, place in the model, initialisation.
struct AttentionConfig {
  int64_t d_model = 0;       ///< width of the inputs and of the output
  int64_t heads = 1;         ///< query heads; divide d_model unless head_dim is given
  int64_t kv_heads = 0;      ///< key-value heads, each shared by a group of query heads; 0: as many as heads
  int64_t head_dim = 0;      ///< of the queries, keys and values of one head; 0: d_model / heads
  bool causal = false;       ///< part of a decoder: no query attends to later keys
  bool cross = false;        ///< keys come from another sequence
  int64_t max_length = 0;    ///< the longest input; 0: unknown
  int64_t layer = 0;         ///< index of the layer, from 0
  int64_t layers = 1;        ///< number of layers
  double dropout = 0;        ///< on the attention weights
  bool input_bias = false;   ///< of the query, key and value projections
  bool output_bias = false;  ///< of the output projection
  Init init = Init::xavier;  ///< of the projections' weights
  double output_gain = 1;    ///< multiplies the output projection's initial weights
  Modifiers modifiers = {};  ///< position kind, qk_norm, softcap, sink
  /// Shared by the attentions at this place in all layers; empty: nothing is shared.
  std::shared_ptr<SharedByLayers> shared = {};

  /// head_dim, or d_model / heads where that is 0.
  int64_t width_of_head() const { return head_dim > 0 ? head_dim : d_model / std::max<int64_t>(heads, 1); }
  /// Width of all heads concatenated.
  int64_t inner_width() const { return heads * width_of_head(); }
};

/// Creates an attention, so that models need not know the variants.
using AttentionFactory = std::function<std::unique_ptr<Attention>(const AttentionConfig&, Rng&)>;

/// Sets those of an attention's parameters query.weight, key.weight and value.weight that it has to the
/// identity matrix. A usage error where it has none of them, and where one is not square.
void set_identity_projections(Attention& attention);

}  // namespace heed
