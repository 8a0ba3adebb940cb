// The interface of every way of attending.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/mask.h"
#include "nn/module.h"
#include "nn/position.h"

namespace heed {

/// What a variant keeps between calls. Lists its tensors ([B, ...]) in fields(), so that moving, reordering
/// beams and detaching are generic.
struct Memory {
  int64_t length = 0;   ///< keys remembered
  int64_t queries = 0;  ///< queries answered: the absolute position of the next one
  virtual ~Memory() = default;
  virtual void fields(Fields& f) = 0;
};

/// Row i of every remembered tensor becomes row order[i]: what beam search does to its hypotheses. order: i32
/// [B'].
void reorder(Memory& memory, const Tensor& order);

/// Receives maps: [B, H, Tq, Tk] with the module they come from. Asking never changes the output.
struct Probe {
  struct Map {
    const Module* who;
    Tensor weights;
    Tensor drawn = {};  ///< where an attention picks single keys: 1 at those, 0 elsewhere
  };
  void see(const Module& who, const Tensor& map, const Tensor& drawn = {}) {
    maps.push_back({&who, map.detach(), drawn ? drawn.detach() : Tensor()});
  }
  std::vector<Map> maps;
};

/// What a model said of a batch: for terms that need to know how well it did.
struct Likelihood {
  Tensor of_sequences;  ///< [B], nats: log p of the targets of each sequence, without history
  Tensor weight;        ///< rank 0: what the loss is a mean over, tokens or examples of the batch
  Tensor real;          ///< [B]: 1; 0 for a sequence without targets, which is there to fill a batch up
};

/// Extra terms of the loss, such as those of stochastic attention or routing. Whoever takes the step adds
/// sum() to the loss of the task.
struct Terms {
  using FromLikelihood = std::function<Tensor(const Likelihood&)>;

  /// A term of rank 0, in the unit of the loss.
  void add(const char* name, const Tensor& term) { list.emplace_back(name, term); }
  /// A term made once the likelihood is known: settle() asks for it.
  void add(const char* name, FromLikelihood make) { waiting.emplace_back(name, std::move(make)); }
  /// Turns what waits into terms. The task calls it; see settle_terms().
  void settle(const Likelihood& likelihood);
  /// Of all terms; empty when there are none. Fails when some still wait for a likelihood.
  Tensor sum() const;

  std::vector<std::pair<std::string, Tensor>> list;
  std::vector<std::pair<std::string, FromLikelihood>> waiting;
  bool rehearsal = false;  ///< a step that is only tried out: nothing is to be remembered of it
};

/// Gives terms that wait the likelihood of `targets` (i32 [B, ...]) under `logits` [B, ..., V]; targets equal
/// to `ignore` do not count. Does nothing when none wait.
void settle_terms(Terms* terms, const Tensor& logits, const Tensor& targets, int32_t ignore = -1);
/// The same for logits [N, V] and targets [N] that hold the sequences one after the other: `rows` tells how
/// many each has.
void settle_terms(Terms* terms, const Tensor& logits, const Tensor& targets, std::span<const int64_t> rows,
                  int32_t ignore = -1);

/// The same where an example is `parts` sequences of a batch [parts * B]: the first of all examples, then the
/// second of all. Each of them has its example's likelihood.
void settle_terms_of_parts(Terms* terms, const Tensor& logits, const Tensor& targets, int64_t parts);

/// What a whole forward pass carries: noise while training, somebody who looks, extra terms.
struct Pass {
  Rng* noise = nullptr;  ///< dropout and sampling; null when evaluating
  Probe* probe = nullptr;
  Terms* terms = nullptr;
};

/// One call to an attention.
struct Attend {
  Tensor queries = {};  ///< [B, Tq, width]
  Tensor keys =
      {};  ///< [B, Tk, width]; the same tensor for self-attention; empty if `memory` holds all of them
  Mask mask = {};            ///< who may look at whom
  Memory* memory = nullptr;  ///< what earlier calls left behind: keys given are appended to it
  Pass pass = {};
};

/// The memory of a call as the kind that its attention keeps; null without one. Fails for another's.
template <class Kind>
Kind* memory_of(const Attend& call) {
  auto* memory = dynamic_cast<Kind*>(call.memory);
  if (call.memory != nullptr && memory == nullptr)
    fail("attention: this memory is another attention's. Use the one from start().");
  return memory;
}

/// Any way of attending. Rung 4 of the ladder: override forward().
class Attention : public Module {
 public:
  virtual Tensor forward(const Attend& call) = 0;  ///< [B, Tq, width]
  /// An empty memory; null when this attention cannot go step by step.
  virtual std::unique_ptr<Memory> start() const { return nullptr; }
};

/// How queries and keys are normalised before they meet: by their root mean square, with a gain for each
/// element (as in Qwen 3), or to length one, with a gain for each head (Henry et al. 2020).
enum class QkNorm { none, rms, l2 };

/// One more score in the softmax of each row, which has no value: 0 ("softmax off by one") or trained.
enum class Sink { none, zero, learned };

/// What combines with most attentions and is none itself. Where one makes no sense it is refused.
struct Modifiers {
  PositionKind position = PositionKind::none;  ///< of those inside an attention
  double position_base = 10000;   ///< of rope: pair i of d / 2 turns by base^(-2 i / d) a position
  int64_t position_buckets = 32;  ///< of t5
  int64_t position_span = 128;    ///< t5: distances from here on share a bucket; shaw: a vector
  QkNorm qk_norm = QkNorm::none;
  double softcap = 0;  ///< scores s become softcap tanh(s / softcap); 0: they stay as they are
  Sink sink = Sink::none;
};

/// Tensors that layers of one stack have in common: the first to need one makes it, the others take the same.
struct SharedByLayers {
  std::map<std::string, Tensor> tensors;
};

/// What the host knows when it makes an attention.
struct AttentionConfig {
  int64_t width = 0;
  int64_t heads = 1;
  int64_t key_heads = 0;   ///< heads of keys and values, which groups of query heads share; 0: as many
  int64_t head_width = 0;  ///< of one head's queries, keys and values; 0: width / heads
  bool causal = false;     ///< the host is a decoder
  bool cross = false;      ///< keys come from elsewhere
  int64_t max_length = 0;  ///< the longest input; 0: not known
  int64_t layer = 0, layers = 1;
  double dropout = 0;       ///< on the weights
  bool input_bias = false;  ///< of the query, key and value projections
  bool output_bias = false;
  Init init = Init::xavier;
  double output_gain = 1;  ///< of the output projection's initial weights
  Modifiers modifiers = {};
  /// Of the attentions at this place in each layer; empty: a layer by itself.
  std::shared_ptr<SharedByLayers> shared = {};

  int64_t width_of_head() const { return head_width > 0 ? head_width : width / std::max<int64_t>(heads, 1); }
  /// Of all heads side by side.
  int64_t inner_width() const { return heads * width_of_head(); }
};

/// How a model gets its attentions without knowing any variant.
using AttentionFactory = std::function<std::unique_ptr<Attention>(const AttentionConfig&, Rng&)>;

}  // namespace heed
