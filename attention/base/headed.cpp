// Projections, heads, and the memory of keys and values.
#include "attention/headed.h"

#include "core/kernels/copy.h"
#include "core/launch.h"
#include "core/table.h"

namespace heed {

Tensor identity(int64_t size, const Tensor& as) {
  std::vector<float> values(static_cast<size_t>(size * size), 0.0F);
  for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i * (size + 1))] = 1;
  return constant_table<float>(values, Shape{1, 1, size, size}, as.device(), as.dtype());
}

void KeyValueMemory::fields(Fields& f) {
  f("keys", keys);
  f("values", values);
  f("first_keys", first_keys);
  f("first_values", first_values);
}

/// Rows of number `from` on stay, `rows` follow.
void KeyValueMemory::append(Tensor& all, const Tensor& rows, int64_t from, bool keep_history) const {
  const int64_t present = all ? length - from : 0, total = present + rows.extent(2);
  const int64_t begin = from - forgotten;
  if (keep_history) {
    const std::vector<Tensor> parts = present > 0
                                          ? std::vector<Tensor>{slice(all, 2, begin, begin + present), rows}
                                          : std::vector<Tensor>{rows};
    all = concat(parts, 2);
    return;
  }
  if (!all || all.extent(2) < total || begin > 0) {
    // Cross-attention is filled once; what grows by steps gets room for as much again.
    Shape shape = rows.shape();
    shape[2] = all ? std::max<int64_t>(2 * present, total) : (rows.extent(2) == 1 ? 16 : total);
    const Tensor other = Tensor::zeros(shape, rows.dtype(), rows.device());
    if (present > 0)
      launch<kernel::Copy>(rows.device(), view::slice(all, 2, begin, begin + present),
                           view::slice(other, 2, 0, present));
    all = other;
  }
  // Rows below `length` never change, so what a tape has read of them stays as it was.
  launch<kernel::Copy>(rows.device(), rows.detach(), view::slice(all, 2, present, total));
}

void KeyValueMemory::remember(Heads& heads) {
  int64_t needed = forgotten;  // the first key that somebody still reaches
  if (heads.k) {
    const int64_t added = heads.k.extent(2);
    const bool keep_history = recording() && (heads.k.node() || heads.v.node() || (keys && keys.node()));
    if (reach >= 0) needed = std::max(forgotten, length - reach);
    const int64_t anchored = std::min(anchors - length, added);
    if (anchored > 0) {
      const auto more = [&](const Tensor& there, const Tensor& rows) {
        const Tensor part = slice(rows, 2, 0, anchored);
        return concat(there ? std::vector<Tensor>{there, part} : std::vector<Tensor>{part}, 2);
      };
      first_keys = more(first_keys, heads.k);
      first_values = more(first_values, heads.v);
    }
    // Without a tape rows move only when there is no room left for new ones.
    const bool full = !keys || keys.extent(2) < length - forgotten + added;
    const int64_t from = keep_history || full ? needed : forgotten;
    append(keys, heads.k, from, keep_history);
    append(values, heads.v, from, keep_history);
    forgotten = from;
    length += added;
  }
  if (length == 0)
    fail("attention: no keys were given and none are remembered. Give keys in the first call.");
  front = std::min(anchors, needed);
  const auto recalled = [&](const Tensor& first, const Tensor& all) {
    const Tensor recent = slice(all, 2, needed - forgotten, length - forgotten);
    return front > 0 ? concat(std::vector<Tensor>{slice(first, 2, 0, front), recent}, 2) : recent;
  };
  heads.k = recalled(first_keys, keys);
  heads.v = recalled(first_values, values);
}

namespace {

/// The width that queries of all heads have. Fails where heads do not divide.
int64_t query_width(const AttentionConfig& config) {
  if (config.heads < 1 || (config.head_width == 0 && config.width % config.heads != 0)) {
    fail("attention: ", config.heads, " heads do not divide the width ", config.width,
         ". Use a divisor of it.");
  }
  if (config.head_width < 0)
    fail("attention: heads of width ", config.head_width, ". It must be at least 1, or 0 for width / heads.");
  return config.inner_width();
}

/// The same of keys and values.
int64_t key_width(const AttentionConfig& config) {
  if (config.key_heads == 0) return query_width(config);
  if (config.key_heads < 0 || config.heads % config.key_heads != 0) {
    fail("attention: ", config.key_heads, " key heads do not divide ", config.heads,
         " heads. Use a divisor of them, or 0 for as many.");
  }
  return config.width_of_head() * config.key_heads;
}

}  // namespace

HeadedAttention::HeadedAttention(const AttentionConfig& config, Rng& rng, Project project)
    : query(project == Project::v ? Linear()
                                  : Linear(config.width, query_width(config), rng,
                                           {.bias = config.input_bias, .init = config.init})),
      key(project == Project::qkv
              ? Linear(config.width, key_width(config), rng, {.bias = config.input_bias, .init = config.init})
              : Linear()),
      value(config.width, key_width(config), rng, {.bias = config.input_bias, .init = config.init}),
      output(config.inner_width(), config.width, rng,
             {.bias = config.output_bias, .init = config.init, .gain = config.output_gain}),
      config_(config),
      project_(project),
      modifiers_(config, rng) {
  config_.shared = nullptr;  // what a variant has taken from there is its own; the rest is not to be kept
  const Modifiers& m = config.modifiers;
  if (project == Project::shared_qk && key_heads() != config.heads)
    fail(
        "attention: keys are projected as queries are, so there are as many heads of them. Leave key_heads "
        "0.");
  if (project == Project::shared_qk && m.qk_norm != QkNorm::none)
    fail("attention: keys are queries here, and have their norm already. Set qk_norm to none.");
  const bool turned = m.position == PositionKind::rope || m.position == PositionKind::rope_interleaved;
  const bool no_keys = project == Project::qv || project == Project::v;
  if (no_keys && (turned || m.qk_norm != QkNorm::none))
    fail(
        "attention: this score does not look at keys, so rope and qk_norm have nothing to act on. Set them "
        "to none.");
}

Tensor HeadedAttention::split(const Tensor& x) const {
  return transpose(reshape(x, Shape{x.extent(0), x.extent(1), -1, head_width()}), 1, 2);
}

// Where no score looks at queries or keys, something of their number stands in for them: the input where it
// is as wide as the heads, zeros otherwise. Of keys, the values.
Tensor HeadedAttention::unread(const Tensor& x) const {
  if (x.extent(2) == config_.inner_width()) return split(x);
  return Tensor::zeros(Shape{x.extent(0), config_.heads, x.extent(1), head_width()}, x.dtype(), x.device());
}

Tensor HeadedAttention::forward(const Attend& call) {
  const Within within(this);
  if (!call.keys && call.memory == nullptr)
    fail("attention: no keys and no memory. Give keys, or a memory that holds them.");
  Heads heads{project_ == Project::v ? unread(call.queries) : split(query(call.queries)), {}, {}};
  if (call.keys) {
    heads.v = split(value(call.keys));
    if (project_ == Project::qv || project_ == Project::v)
      heads.k = heads.v;
    else if (project_ == Project::shared_qk && !config_.cross)
      heads.k = heads.q;
    else
      heads.k = split(project_ == Project::qkv ? key(call.keys) : query(call.keys));
  }
  const Tensor joined = transpose(on_heads(ready(std::move(heads), call), call), 1, 2);  // [B, Tq, H, d]
  return output(reshape(joined, Shape{joined.extent(0), joined.extent(1), -1}));
}

Heads HeadedAttention::ready(Heads heads, const Attend& call) const {
  const int64_t kept = call.memory != nullptr ? call.memory->length : 0;
  const int64_t behind =
      heads.k && call.memory == nullptr && !config_.cross ? heads.k.extent(2) - heads.q.extent(2) : kept;
  if (project_ != Project::v) heads.q = modifiers_.ready_query(heads.q, behind);
  if (heads.k && project_ != Project::qv && project_ != Project::v)
    heads.k = modifiers_.ready_key(heads.k, kept);
  return heads;
}

Tensor HeadedAttention::on_heads(Heads heads, const Attend& call) {
  const int64_t asked = heads.q.extent(2), asked_heads = heads.q.extent(1);
  if (heads.k && (heads.k.extent(1) < 1 || asked_heads % heads.k.extent(1) != 0)) {
    fail("attention: q ", heads.q.shape(), " and k ", heads.k.shape(),
         ". Heads of k must divide those of q.");
  }
  // A KeyValueMemory keeps the heads there are; recall() repeats them afterwards.
  const bool remembers = dynamic_cast<KeyValueMemory*>(call.memory) != nullptr;
  if (heads.k && !remembers && !shares_keys()) {
    heads.k = repeated(heads.k, asked_heads);
    heads.v = repeated(heads.v, asked_heads);
  }
  Tensor y = attend(std::move(heads), call);
  if (call.memory != nullptr) call.memory->queries += asked;
  return y;
}

int64_t HeadedAttention::recall(Heads& heads, const Attend& call) const {
  if (call.memory == nullptr) return config_.cross ? 0 : heads.k.extent(2) - heads.q.extent(2);
  auto* memory = memory_of<KeyValueMemory>(call);
  const int64_t first = config_.cross ? memory->queries : memory->length;
  memory->remember(heads);
  if (!shares_keys()) {
    heads.k = repeated(heads.k, heads.q.extent(1));
    heads.v = repeated(heads.v, heads.q.extent(1));
  }
  return first;
}

kernel::AttentionTerms HeadedAttention::terms(const Attend& call, double scale) const {
  kernel::AttentionTerms terms{.scale = scale};
  if (call.pass.noise != nullptr && config_.dropout > 0) {
    terms.dropout = config_.dropout;
    terms.draw = call.pass.noise->next();
  }
  return terms;
}

void HeadedAttention::refuse_extras(const char* name, const Attend& call) {
  if (call.mask.bias()) {
    fail("attention '", name,
         "': it has no score for each pair of positions to add a bias to. Leave the bias out, ",
         "or use softmax.");
  }
  if (call.memory != nullptr) {
    fail("attention '", name,
         "': it looks at all keys at once and keeps no memory. Give all keys in one call.");
  }
}

void HeadedAttention::fields(Fields& f) {
  if (project_ != Project::v) f("query", query);
  if (project_ == Project::qkv) f("key", key);
  f("value", value);
  f("output", output);
  modifiers_.fields(f);
}

}  // namespace heed
