// Evaluates a trained language model under other attentions.
#include "heed/train/experiments/attention_errors.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/safetensors.h"
#include "heed/nn/weight_transfer.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/language/lm_data.h"

namespace heed {
namespace {

constexpr size_t batch_windows = 8;

/// The queries and keys of a call [B, H, T, d], normalised and rotated as for the scores, and its values.
/// `layer` has as many heads of keys as of queries.
Heads heads_of(const MultiHeadAttention& layer, const AttentionInput& input) {
  const Tensor& x = input.queries;
  const auto split_heads = [&](const Tensor& projected) {
    return transpose(reshape(projected, Shape{x.extent(0), x.extent(1), layer.config().heads, -1}), 1, 2);
  };
  return layer.normalize_and_rotate(
      {split_heads(layer.query(x)), split_heads(layer.key(x)), split_heads(layer.value(x))}, input);
}

/// An attention that shows the heads of each call.
class ShownAttention final : public Attention {
 public:
  ShownAttention(std::unique_ptr<Attention> attention, const std::function<void(const Heads&)>& visit)
      : attention_(std::move(attention)), visit_(visit) {}

  void fields(Fields& f) override { attention_->fields(f); }

  Tensor forward(const AttentionInput& input) override {
    const auto* layer = dynamic_cast<const MultiHeadAttention*>(attention_.get());
    if (layer == nullptr) fail("this model's attention has no projections into heads. Take another run.");
    const AttentionConfig& config = layer->config();
    if (layer->kv_heads() != config.heads)
      fail("model.kv_heads is ", layer->kv_heads(), " and model.heads ", config.heads,
           ": heads that share keys cannot be shown. Take a run with model.kv_heads = 0.");
    const Modifiers& modifiers = config.modifiers;
    if (by_distance(modifiers.position) || modifiers.softcap > 0 || modifiers.sink != Sink::none)
      fail("this model's scores have a bias by position, a softcap or a sink, so they are not q . k alone. ",
           "Take a run without: model.position = rope, model.softcap = 0, model.sink = none.");
    visit_(heads_of(*layer, input));
    return attention_->forward(input);
  }

 private:
  std::unique_ptr<Attention> attention_;
  const std::function<void(const Heads&)>& visit_;
};

/// Exact attention that also runs another attention on the same inputs and weights, and sums its errors.
class PairedAttention final : public Attention {
 public:
  struct Sums {
    double divergence = 0, rows = 0;                  // sum over rows of their divergence; number of rows
    double squared_difference = 0, exact_square = 0;  // squared Frobenius norms of outputs
    std::vector<double> negative, pairs;  // by head: number of causal pairs with q . k < 0; of all
  };

  PairedAttention(const std::string& spec, const AttentionConfig& config, Rng& rng, Sums& sums)
      : exact_(make_attention("softmax", config, rng)),
        other_(make_attention(spec, config, rng)),
        heads_(config.kv_heads == 0 || config.kv_heads == config.heads ? config.heads : 0),
        sums_(sums) {
    sums_.negative.resize(static_cast<size_t>(heads_));
    sums_.pairs.resize(static_cast<size_t>(heads_));
  }

  void fields(Fields& f) override { exact_->fields(f); }

  Tensor forward(const AttentionInput& input) override {
    copy_weights();
    MapRecorder exact_maps, other_maps;
    AttentionInput call = input;
    call.context.recorder = &exact_maps;
    const Tensor exact_output = exact_->forward(call);
    call.context.recorder = &other_maps;
    const Tensor other_output = other_->forward(call);
    add_output_errors(exact_output.to_host(), other_output.to_host());
    add_divergences(exact_maps.maps.at(0).weights, other_maps.maps.at(0).weights);
    count_negative_pairs(input);
    return exact_output;
  }

 private:
  /// Gives the other attention the exact one's tensors of the same names.
  void copy_weights() {
    std::map<std::string, Tensor> trained;
    visit_tensors(*exact_, [&](const std::string& name, Tensor& x) { trained[name] = x; });
    visit_tensors(*other_, [&](const std::string& name, Tensor& x) {
      const auto found = trained.find(name);
      if (found != trained.end()) x = found->second;
    });
  }

  void add_output_errors(const std::vector<float>& exact, const std::vector<float>& other) {
    for (size_t i = 0; i < exact.size(); ++i) {
      const double difference = static_cast<double>(other[i]) - static_cast<double>(exact[i]);
      sums_.squared_difference += difference * difference;
      sums_.exact_square += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
    }
  }

  /// Adds KL(p || q) = sum_j p_j log(p_j / q_j) of each row p of the exact map and q of the other map [...,
  /// keys]. q is normalized first: with denominator=paper its sum is above one.
  void add_divergences(const Tensor& exact_map, const Tensor& other_map) {
    constexpr double min_weight = 1e-38;  // least weight of the other map: keeps the logarithm finite
    const int64_t keys = exact_map.extent(-1), rows = exact_map.size() / keys;
    const std::vector<float> exact = exact_map.to_host(), other = other_map.to_host();
    for (int64_t row = 0; row < rows; ++row) {
      const float *p = exact.data() + row * keys, *q = other.data() + row * keys;
      double q_sum = 0, divergence = 0;
      for (int64_t j = 0; j < keys; ++j) q_sum += static_cast<double>(q[j]);
      for (int64_t j = 0; j < keys; ++j) {
        const auto weight = static_cast<double>(p[j]);
        if (weight > 0)
          divergence += weight * std::log(weight * q_sum / std::max(static_cast<double>(q[j]), min_weight));
      }
      sums_.divergence += divergence;
    }
    sums_.rows += static_cast<double>(rows);
  }

  /// Counts causal pairs with q . k < 0 for each head; q and k are normalized and rotated as for the scores.
  void count_negative_pairs(const AttentionInput& input) {
    if (heads_ == 0) return;  // heads share keys
    const int64_t batch = input.queries.extent(0), length = input.queries.extent(1);
    const Heads heads = heads_of(dynamic_cast<const MultiHeadAttention&>(*exact_), input);
    const std::vector<float> products = matmul(heads.q, transpose(heads.k, 2, 3)).to_host();  // [B, H, T, T]
    for (int64_t row = 0; row < batch * heads_ * length; ++row) {
      const auto head = static_cast<size_t>(row / length % heads_);
      const int64_t visible_keys = row % length + 1;
      for (int64_t j = 0; j < visible_keys; ++j)
        sums_.negative[head] += products[static_cast<size_t>(row * length + j)] < 0 ? 1 : 0;
      sums_.pairs[head] += static_cast<double>(visible_keys);
    }
  }

  std::unique_ptr<Attention> exact_, other_;
  int64_t heads_;
  Sums& sums_;
};

/// Calls use(ids [B, T], targets [B, T]) for each batch of windows. Throws Stopped on a stop signal.
template <class Use>
void each_batch(const std::vector<AttentionErrors::Window>& windows, const Use& use) {
  for (size_t begin = 0; begin < windows.size(); begin += batch_windows) {
    if (StopSignals::received() != 0) throw Stopped{StopSignals::received()};
    const size_t end = std::min(windows.size(), begin + batch_windows);
    std::vector<int32_t> ids, targets;
    for (size_t w = begin; w < end; ++w) {
      ids.insert(ids.end(), windows[w].ids.begin(), windows[w].ids.end());
      targets.insert(targets.end(), windows[w].targets.begin(), windows[w].targets.end());
    }
    const Shape shape{static_cast<int64_t>(end - begin), static_cast<int64_t>(windows[begin].ids.size())};
    use(Tensor::of<int32_t>(ids, shape), Tensor::of<int32_t>(targets, shape));
  }
}

Config settings_of_run(const Path& run) {
  const RunFolder folder = RunFolder::look(run);
  return read_config(io::read(folder.config()), folder.config().string());
}

/// The held-out text of a run as windows that do not overlap; a shorter last window is left out.
std::vector<AttentionErrors::Window> windows_of(Config& config, const Checkpoint& checkpoint) {
  LanguageData data;
  for (const OptionText& option : options_of(*config.task))
    set_option(data.options, option.name, option.value, "data.");
  data.options.stride = 0;
  data.load(config, tokenizer_files(checkpoint), [](const std::string&) {});
  std::vector<AttentionErrors::Window> out;
  for (int64_t b = 0; b < data.test.windows->batches(); ++b) {
    const WindowBatch batch = data.test.windows->in_order(b);
    const int64_t columns = batch.input.columns;
    if (columns != config.model.max_length) continue;
    for (int64_t row = 0; row < batch.input.rows; ++row) {
      const auto cut = [&](const Rows& rows) {
        return std::vector<int32_t>(rows.ids.begin() + row * columns, rows.ids.begin() + (row + 1) * columns);
      };
      out.push_back({cut(batch.input), cut(batch.target)});
    }
  }
  return out;
}

}  // namespace

AttentionErrors::AttentionErrors(const Path& run, int64_t max_windows)
    : run_(run),
      config_(settings_of_run(run)),
      checkpoint_(open_checkpoint(run, best_step(run) ? "best" : "last")),
      weights_(SafeTensors::parse(checkpoint_.file("model.safetensors"),
                                  checkpoint_.path("model.safetensors").string())) {
  if (config_.task_name != "lm") {
    fail("reproduce: ", run.string(), " is a run of the task ", config_.task_name,
         ", not of a language model.");
  }
  vocabulary_ = artifact_tokenizer(tokenizer_files(checkpoint_), "text")->size();
  model_with(attention_factory("softmax"));  // refuses damaged weights once, before any cell is measured
  const std::vector<Window> all = windows_of(config_, checkpoint_);
  const auto count = static_cast<int64_t>(all.size());
  if (count < 5) {
    fail("reproduce: the held-out text of ", run.string(), " has ", count, " windows of ",
         config_.model.max_length,
         " tokens. Two portions of 20 % need at least 5: train on more text, or with a ",
         "smaller data.train_fraction or model.max_length.");
  }
  std::string scored;
  for (int64_t portion = 0; portion < portions; ++portion) {
    const int64_t first = count * (portion + 1) / 5;
    int64_t last = count * (portion + 2) / 5;
    if (max_windows > 0) last = std::min(last, first + max_windows);
    windows_[portion].assign(all.begin() + first, all.begin() + last);
    for (const Window& window : windows_[portion])
      scored.append(reinterpret_cast<const char*>(window.ids.data()), window.ids.size() * sizeof(int32_t));
  }
  fingerprint_ = sha256_hex(checkpoint_.file("model.safetensors") + scored).substr(0, 12);
  checkpoint_.files.erase("model.safetensors");  // weights_ has it
}

std::unique_ptr<DecoderOnly> AttentionErrors::model_with(const AttentionFactory& factory) const {
  Rng rng(static_cast<uint64_t>(config_.train.seed));
  auto model = std::make_unique<DecoderOnly>(config_.model, vocabulary_, factory, rng);
  transfer_weights(*model, weights_);
  return model;
}

double AttentionErrors::perplexity(const std::string& spec, int64_t portion) const {
  const NoGrad no_grad;
  const std::unique_ptr<DecoderOnly> model = model_with(attention_factory(spec));
  double total_loss = 0, num_tokens = 0;
  each_batch(windows_[portion], [&](const Tensor& ids, const Tensor& targets) {
    const auto count = static_cast<double>(ids.size());
    total_loss += cross_entropy((*model)(ids, {}), targets).item() * count;
    num_tokens += count;
  });
  return std::exp(total_loss / num_tokens);
}

double AttentionErrors::own_perplexity(const std::string& spec, int64_t portion, uint64_t seed) const {
  const NoGrad no_grad;
  const std::unique_ptr<DecoderOnly> model = model_with(attention_factory(spec));
  constexpr double temperature = 0.8;
  Rng rng(seed);
  double total_log_p = 0, num_positions = 0;
  each_batch(windows_[portion], [&](const Tensor& ids, const Tensor&) {
    const Tensor log_p = log_softmax((*model)(ids, {}) / temperature);
    const std::vector<float> all = log_p.to_host();
    const int64_t length = ids.extent(1), vocabulary = log_p.extent(2);
    for (int64_t position = 0; position < ids.size(); ++position) {
      num_positions += 1;
      if (position % length == length - 1) continue;  // predicts the token behind the window
      const float* row = all.data() + position * vocabulary;
      double remaining = rng.uniform();  // the token at which the sum of probabilities passes it is drawn
      int64_t drawn = 0;
      while (drawn + 1 < vocabulary && (remaining -= std::exp(static_cast<double>(row[drawn]))) >= 0) ++drawn;
      total_log_p += static_cast<double>(row[drawn]);
    }
  });
  return std::exp(-total_log_p / num_positions);
}

AttentionErrors::Distance AttentionErrors::distance(const std::string& spec, int64_t portion) const {
  const NoGrad no_grad;
  std::vector<PairedAttention::Sums> sums(static_cast<size_t>(config_.model.layers));
  const std::unique_ptr<DecoderOnly> model = model_with([&](const AttentionConfig& config, Rng& rng) {
    return std::make_unique<PairedAttention>(spec, config, rng, sums[static_cast<size_t>(config.layer)]);
  });
  each_batch(windows_[portion], [&](const Tensor& ids, const Tensor&) { (*model)(ids, {}); });
  Distance out;
  for (const PairedAttention::Sums& layer : sums) {
    const auto layers = static_cast<double>(sums.size());
    out.divergence += layer.divergence / layer.rows / layers;
    out.outputs += std::sqrt(layer.squared_difference / layer.exact_square) / layers;
    for (size_t head = 0; head < layer.pairs.size(); ++head) {
      out.min_negative = std::min(out.min_negative, layer.negative[head] / layer.pairs[head]);
      out.max_negative = std::max(out.max_negative, layer.negative[head] / layer.pairs[head]);
    }
  }
  return out;
}

void AttentionErrors::visit_heads(int64_t portion, const std::function<void(const Heads&)>& visit) const {
  const NoGrad no_grad;
  const AttentionFactory factory = attention_factory(own_attention());
  const std::unique_ptr<DecoderOnly> model = model_with([&](const AttentionConfig& config, Rng& rng) {
    return std::make_unique<ShownAttention>(factory(config, rng), visit);
  });
  each_batch(windows_[portion], [&](const Tensor& ids, const Tensor&) { (*model)(ids, {}); });
}

std::string AttentionErrors::description() const {
  return text(run_.filename().string(), ", step ", checkpoint_.step, ", ", config_.model.layers,
              " layers of ", config_.model.heads, " heads, width ", config_.model.d_model, "; ",
              windows_[0].size(), " windows of ", config_.model.max_length, " tokens a portion");
}

}  // namespace heed
