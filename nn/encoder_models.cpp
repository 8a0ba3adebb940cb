// Transformer encoders over tokens or vectors, with heads that classify or predict tokens.
#include "heed/nn/encoder_models.h"

#include "heed/autograd/autocast.h"
#include "heed/core/io/safetensors.h"

namespace heed {
namespace {

LinearOptions linear_options(const TransformerConfig& config) { return {.init = config.init}; }

/// Returns the options. Fails where they give neither a vocabulary nor features.
const EncoderModel::Options& with_input(const EncoderModel::Options& options) {
  if (options.vocabulary < 1 && options.features < 1)
    fail("classifier: neither a vocabulary nor features are given. Set the one that fits the input.");
  return options;
}

}  // namespace

EncoderModel::EncoderModel(const TransformerConfig& config, const Options& options,
                           const AttentionFactory& attention, Rng& rng)
    : causal_(with_input(options).causal),
      dropout_(config.check().dropout_of_embeddings()),
      logit_scale_(config.logit_scale * config.width_ratio()),
      embedder_(options.vocabulary > 0 ? std::make_unique<Embedder>(options.vocabulary, config, rng)
                                       : nullptr),
      patches_(embedder_
                   ? nullptr
                   : std::make_unique<Linear>(options.features, config.d_model, rng, linear_options(config))),
      position_(embedder_ ? PositionKind::none : config.position, config.max_length, config.d_model, rng,
                config.position_deviation),
      first_(options.first ? normal_parameter(Shape{1, 1, config.d_model}, 0.02, rng) : Tensor()),
      embedding_norm_(options.embedding_norm
                          ? std::make_unique<LayerNorm>(config.d_model, config.norm_options())
                          : nullptr),
      encoder_(config, {.causal = options.causal}, attention, {}, rng) {}

Mask EncoderModel::mask(const Tensor& lengths) const {
  const Mask mask = lengths ? Mask::lengths(lengths) : Mask::none();
  return causal_ ? mask & Mask::causal() : mask;
}

Tensor EncoderModel::without_padding(const Tensor& x, const std::shared_ptr<const Packing>& packing) const {
  if (!packing || first_) return x;
  return x.rank() == 3 ? packing->packed(x) : packing->packed_ids(x);
}

Tensor EncoderModel::vectors(const Tensor& x) const {
  return embedder_ ? embedder_->vectors(x) : (*patches_)(cast(x, patches_->weight.dtype()));
}

Tensor EncoderModel::encoded(const Tensor& vectors, const Tensor& lengths, const ForwardContext& context,
                             const Tensor& positions, const std::shared_ptr<const Packing>& packing) const {
  Tensor x = vectors;
  if (first_) x = concat(std::vector<Tensor>{expand(first_, Shape{x.extent(0), 1, x.extent(2)}), x}, 1);
  const Position& position = embedder_ ? embedder_->position : position_;
  const auto normalised = [&](const Tensor& sum) { return embedding_norm_ ? (*embedding_norm_)(sum) : sum; };
  if (!packing) {
    x = normalised(positions ? position.at(x, positions) : position(x, 0));
    x = narrowed_dropout(x, dropout_, context.rng);
    return widened(encoder_(x, mask(lengths), {}, {}, nullptr, context));
  }
  if (first_) x = packing->packed(x);
  x = positions ? position.at(x, packing->packed_ids(positions)) : position.at(x, *packing);
  const Mask mask = causal_ ? Mask::packed(packing) & Mask::causal() : Mask::packed(packing);
  x = narrowed_dropout(normalised(x), dropout_, context.rng, packing->places);
  return widened(encoder_(x, mask, {}, {}, nullptr, context));
}

void EncoderModel::fields(Fields& f) {
  f("embedder", embedder_);
  f.boundary("patches", patches_);
  f("position", position_);
  f("first", first_);
  f("embedding_norm", embedding_norm_);
  f("encoder", encoder_);
}

namespace {

/// The tensors of an EncoderModel without those that a derived model adds.
class EncoderPart final : public Module {
 public:
  explicit EncoderPart(EncoderModel& model) : model_(model) {}
  void fields(Fields& f) override { model_.EncoderModel::fields(f); }

 private:
  EncoderModel& model_;
};

}  // namespace

void EncoderModel::load_encoder(const std::string& bytes, const std::string& name) {
  EncoderPart encoder(*this);
  const SafeTensors file = SafeTensors::parse(bytes, name);
  std::vector<TensorBytes> own;
  for (const Named& named : tensors(encoder)) {
    if (const TensorEntry* entry = file.find(named.name))
      own.push_back({entry->name, entry->dtype, entry->shape, file.bytes(*entry)});
  }
  load_bytes(encoder, encode_safetensors(own), name);
}

int64_t Classifier::head_width(const TransformerConfig& config) const {
  return config.d_model * (options_.pairing == Pairing::none     ? 1
                           : options_.pairing == Pairing::concat ? 2
                                                                 : 4);
}

Classifier::Classifier(const TransformerConfig& config, const Options& options,
                       const AttentionFactory& attention, Rng& rng)
    : EncoderModel(config,
                   {.vocabulary = options.vocabulary,
                    .features = options.features,
                    .first = options.pool == Pool::first,
                    .causal = options.causal},
                   attention, rng),
      options_(options) {
  int64_t width = head_width(config);
  const auto add_layer = [&](std::unique_ptr<Linear>& layer, int64_t hidden) {
    LinearOptions linear = linear_options(config);
    if (!hidden_) linear.gain = std::sqrt(config.width_ratio());  // the first of them reads hidden states
    layer = std::make_unique<Linear>(width, hidden, rng, linear);
    width = hidden;
  };
  if (options.head_hidden > 0) add_layer(hidden_, options.head_hidden);
  if (options.head_hidden > 1 && options.pairing == Pairing::concat)
    add_layer(second_, options.head_hidden / 2);
  classes_ = Linear(width, options.classes, rng, linear_options(config));
}

Tensor Classifier::pooled(const Tensor& x, const Tensor& lengths) const {
  const int64_t batch = x.extent(0), length = x.extent(1), width = x.extent(2);
  const auto divisor = static_cast<double>(options_.mean_over);
  if (has_first()) return slice(x, 1, 0, 1);
  if (options_.pool == Pool::last && !lengths) return slice(x, 1, length - 1, length);
  if (options_.pool == Pool::mean && (!lengths || options_.mean_of_all))
    return options_.mean_over > 0 ? sum(x, 1) / divisor : mean(x, 1);
  const Tensor ones = reshape(mask(lengths).padding_mask(reshape(x, Shape{batch, 1, length, width}), 0),
                              Shape{batch, length, 1});  // 1 for tokens, 0 for padding
  if (options_.pool == Pool::last) {
    const Tensor none = Tensor::full(Shape{batch, 1, 1}, 0, ones.dtype(), ones.device());
    const Tensor has_successor = concat(std::vector<Tensor>{slice(ones, 1, 1, length), none}, 1);
    return sum(x * (ones - has_successor), 1);  // the difference is 1 at the last real token alone
  }
  const Tensor total = sum(x * ones, 1);
  if (options_.mean_over > 0) return total / divisor;
  return total / maximum(sum(ones, 1), 1);
}

/// pooled() of packed x [1, N, width] -> [B, 1, width].
Tensor Classifier::pooled(const Tensor& x, const Packing& packing) const {
  const int64_t batch = packing.batch(), tokens = x.extent(1), width = x.extent(2);
  const Shape shape{batch, 1, width};
  if (options_.pool != Pool::mean) {
    const Tensor rows =
        options_.pool == Pool::last ? packing.last_rows : slice(packing.sequences.starts, 0, 0, batch);
    return reshape(gather_rows(reshape(x, Shape{1, 1, tokens, width}), reshape(rows, Shape{1, 1, batch})),
                   shape);
  }
  const Tensor total = reshape(packing.sum_of_tokens(x), shape);
  if (options_.mean_over > 0) return total / static_cast<double>(options_.mean_over);
  return total / maximum(reshape(cast(packing.lengths, x.dtype()), Shape{batch, 1, 1}), 1);
}

Tensor Classifier::operator()(const Tensor& input, const Tensor& lengths, const ForwardContext& context,
                              const Tensor& positions) const {
  const ModuleScope within(this);
  // A mean of all tokens reads those behind the lengths, too.
  const auto packing =
      options_.mean_of_all ? nullptr : context.packing(lengths, input.extent(1) + (has_first() ? 1 : 0));
  Tensor x = encoded(vectors(without_padding(input, packing)), lengths, context, positions, packing);
  x = packing ? pooled(x, *packing) : pooled(x, lengths);
  x = reshape(x, Shape{x.extent(0), x.extent(2)});
  if (options_.pairing != Pairing::none) {
    const int64_t pairs = x.extent(0) / 2;
    if (x.extent(0) != 2 * pairs)
      fail("classifier: ", x.extent(0), " inputs are no pairs. Give an even number.");
    const Tensor u = slice(x, 0, 0, pairs), v = slice(x, 0, pairs, 2 * pairs);
    std::vector<Tensor> both{u, v};
    if (options_.pairing == Pairing::products) both.insert(both.end(), {u * v, u - v});
    x = concat(both, 1);
  }
  if (hidden_) x = relu((*hidden_)(x));
  if (second_) x = relu((*second_)(x));
  return scaled(classes_(x));
}

void Classifier::fields(Fields& f) {
  EncoderModel::fields(f);
  f("hidden", hidden_);
  f("second", second_);
  f.boundary("classes", classes_);
}

TokenPredictor::TokenPredictor(const TransformerConfig& config, const EncoderModel::Options& options,
                               const AttentionFactory& attention, Rng& rng)
    : EncoderModel(config, options, attention, rng),
      hidden_(options.causal ? Tensor() : normal_parameter(Shape{1, config.d_model}, 0.02, rng)),
      tokens_(config.d_model, options.vocabulary, rng, linear_options(config)) {}

Tensor TokenPredictor::operator()(const Tensor& ids, const Tensor& lengths, const Tensor& rows,
                                  const ForwardContext& context, const Tensor& positions) const {
  const ModuleScope within(this);
  const auto packing = context.packing(lengths, ids.extent(1) + (has_first() ? 1 : 0));
  Tensor x = encoded(embedder().vectors(without_padding(ids, packing), hidden_), lengths, context, positions,
                     packing);
  if (packing) x = packing->padded(x);
  if (has_first()) x = slice(x, 1, 1, x.extent(1));
  return scaled(tokens_(embedding(reshape(x, Shape{-1, x.extent(2)}), rows)));
}

void TokenPredictor::fields(Fields& f) {
  EncoderModel::fields(f);
  f("hidden", hidden_);
  f.boundary("tokens", tokens_);
}

}  // namespace heed
