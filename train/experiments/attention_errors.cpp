// Evaluates a trained language model under other attentions.
#include "heed/train/experiments/attention_errors.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/nn/weight_transfer.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/language/lm_data.h"

namespace heed {
namespace {

constexpr int64_t batch_windows = 8;

/// Exact attention, and beside it another on the same inputs and weights whose errors it adds up.
class PairedAttention final : public Attention {
 public:
  struct Sums {
    double divergence = 0, rows = 0;          // sum of divergences in nats, and number of rows
    double difference = 0, exact_square = 0;  // squares of Frobenius norms
    std::vector<double> negative, pairs;      // for each head: pairs with q . k below zero, and all
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
    share_weights();
    MapRecorder exact_maps, other_maps;
    AttentionInput call = input;
    call.context.recorder = &exact_maps;
    const Tensor y = exact_->forward(call);
    call.context.recorder = &other_maps;
    const Tensor z = other_->forward(call);
    add_outputs(y.to_host(), z.to_host());
    add_rows(exact_maps.maps.at(0).weights, other_maps.maps.at(0).weights);
    add_signs(input);
    return y;
  }

 private:
  void share_weights() {
    std::map<std::string, Tensor> trained;
    visit_tensors(*exact_, [&](const std::string& name, Tensor& x) { trained[name] = x; });
    visit_tensors(*other_, [&](const std::string& name, Tensor& x) {
      const auto found = trained.find(name);
      if (found != trained.end()) x = found->second;
    });
  }

  void add_outputs(const std::vector<float>& exact, const std::vector<float>& other) {
    for (size_t i = 0; i < exact.size(); ++i) {
      const double apart = static_cast<double>(other[i]) - static_cast<double>(exact[i]);
      sums_.difference += apart * apart;
      sums_.exact_square += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
    }
  }

  /// Rows of the other map are normalised first: with denominator=paper they sum to more than one.
  void add_rows(const Tensor& exact, const Tensor& other) {
    const int64_t keys = exact.extent(-1), rows = exact.size() / keys;
    const std::vector<float> p = exact.to_host(), q = other.to_host();
    for (int64_t row = 0; row < rows; ++row) {
      const float *own = p.data() + row * keys, *beside = q.data() + row * keys;
      double total = 0, divergence = 0;
      for (int64_t j = 0; j < keys; ++j) total += static_cast<double>(beside[j]);
      for (int64_t j = 0; j < keys; ++j) {
        const auto share = static_cast<double>(own[j]);
        if (share > 0)
          divergence += share * std::log(share * total / std::max(static_cast<double>(beside[j]), 1e-38));
      }
      sums_.divergence += divergence;
    }
    sums_.rows += static_cast<double>(rows);
  }

  /// Counts negative products of queries and keys that they see, normalised and rotated as for the scores.
  void add_signs(const AttentionInput& input) {
    if (heads_ == 0) return;  // keys are shared by groups of heads
    const Tensor& x = input.queries;
    const auto& layer = dynamic_cast<const MultiHeadAttention&>(*exact_);
    const auto split = [&](const Tensor& rows) {
      return transpose(reshape(rows, Shape{x.extent(0), x.extent(1), heads_, -1}), 1, 2);
    };
    const Heads projected =
        layer.normalize_and_rotate({split(layer.query(x)), split(layer.key(x)), {}}, input);
    const Tensor products = matmul(projected.q, transpose(projected.k, 2, 3));
    const std::vector<float> all = products.to_host();
    const int64_t length = x.extent(1);
    for (int64_t row = 0; row < x.extent(0) * heads_ * length; ++row) {
      const auto head = static_cast<size_t>(row / length % heads_);
      const int64_t seen = row % length + 1;
      for (int64_t j = 0; j < seen; ++j)
        sums_.negative[head] += all[static_cast<size_t>(row * length + j)] < 0 ? 1 : 0;
      sums_.pairs[head] += static_cast<double>(seen);
    }
  }

  std::unique_ptr<Attention> exact_, other_;
  int64_t heads_;
  Sums& sums_;
};

/// Calls use(ids [B, T], targets [B, T]) for each batch of windows. A signal ends it.
template <class Use>
void each_batch(const std::vector<AttentionErrors::Window>& windows, const Use& use) {
  for (size_t at = 0; at < windows.size(); at += batch_windows) {
    if (StopSignals::received() != 0) throw Stopped{StopSignals::received()};
    const size_t end = std::min(windows.size(), at + batch_windows);
    std::vector<int32_t> ids, targets;
    for (size_t w = at; w < end; ++w) {
      ids.insert(ids.end(), windows[w].ids.begin(), windows[w].ids.end());
      targets.insert(targets.end(), windows[w].targets.begin(), windows[w].targets.end());
    }
    const Shape shape{static_cast<int64_t>(end - at), static_cast<int64_t>(windows[at].ids.size())};
    use(Tensor::of<int32_t>(ids, shape), Tensor::of<int32_t>(targets, shape));
  }
}

Config settings_of_run(const Path& run) {
  const RunFolder folder = RunFolder::look(run);
  return read_config(io::read(folder.config()), folder.config().string());
}

/// The held-out text of a run, as windows that do not overlap; a rest that is shorter is left out.
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
      checkpoint_(open_checkpoint(run, best_step(run) ? "best" : "last")) {
  if (config_.task_name != "lm") {
    fail("reproduce: ", run.string(), " is a run of the task ", config_.task_name,
         ", not of a language model.");
  }
  vocabulary_ = artifact_tokenizer(tokenizer_files(checkpoint_), "text")->size();
  model_with("softmax");  // refuses damaged weights once, before any cell is measured
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
}

std::unique_ptr<Module> AttentionErrors::model_with(const AttentionFactory& factory) const {
  Rng rng(static_cast<uint64_t>(config_.train.seed));
  auto model = std::make_unique<DecoderOnly>(config_.model, vocabulary_, factory, rng);
  transfer_weights(*model, checkpoint_.file("model.safetensors"),
                   (checkpoint_.folder / "model.safetensors").string());
  return model;
}

std::unique_ptr<Module> AttentionErrors::model_with(const std::string& spec) const {
  return model_with(attention_factory(spec));
}

double AttentionErrors::perplexity(const std::string& spec, int64_t portion) const {
  const NoGrad no_grad;
  const std::unique_ptr<Module> model = model_with(spec);
  double total = 0, tokens = 0;
  each_batch(windows_[portion], [&](const Tensor& ids, const Tensor& targets) {
    const auto count = static_cast<double>(ids.size());
    total += cross_entropy(dynamic_cast<DecoderOnly&>(*model)(ids, {}), targets).item() * count;
    tokens += count;
  });
  return std::exp(total / tokens);
}

double AttentionErrors::own_perplexity(const std::string& spec, int64_t portion, uint64_t seed) const {
  const NoGrad no_grad;
  const std::unique_ptr<Module> model = model_with(spec);
  Rng rng(seed);
  double total = 0, positions = 0;
  each_batch(windows_[portion], [&](const Tensor& ids, const Tensor&) {
    const Tensor log_p = log_softmax(dynamic_cast<DecoderOnly&>(*model)(ids, {}) / 0.8);
    const std::vector<float> all = log_p.to_host();
    const int64_t length = ids.extent(1), words = log_p.extent(2);
    for (int64_t at = 0; at < ids.size(); ++at) {
      positions += 1;
      if (at % length == length - 1) continue;  // the last position predicts what follows the window
      const float* row = all.data() + at * words;
      double rest = rng.uniform();
      int64_t drawn = 0;
      while (drawn + 1 < words && (rest -= std::exp(static_cast<double>(row[drawn]))) >= 0) ++drawn;
      total += static_cast<double>(row[drawn]);
    }
  });
  return std::exp(-total / positions);
}

AttentionErrors::Distance AttentionErrors::distance(const std::string& spec, int64_t portion) const {
  const NoGrad no_grad;
  std::vector<PairedAttention::Sums> sums(static_cast<size_t>(config_.model.layers));
  const std::unique_ptr<Module> model = model_with([&](const AttentionConfig& config, Rng& rng) {
    return std::make_unique<PairedAttention>(spec, config, rng, sums[static_cast<size_t>(config.layer)]);
  });
  each_batch(windows_[portion],
             [&](const Tensor& ids, const Tensor&) { dynamic_cast<DecoderOnly&> (*model)(ids, {}); });
  Distance out;
  for (const PairedAttention::Sums& layer : sums) {
    const auto layers = static_cast<double>(sums.size());
    out.divergence += layer.divergence / layer.rows / layers;
    out.outputs += std::sqrt(layer.difference / layer.exact_square) / layers;
    for (size_t head = 0; head < layer.pairs.size(); ++head) {
      out.min_negative = std::min(out.min_negative, layer.negative[head] / layer.pairs[head]);
      out.max_negative = std::max(out.max_negative, layer.negative[head] / layer.pairs[head]);
    }
  }
  return out;
}

std::string AttentionErrors::description() const {
  return text(run_.filename().string(), ", step ", checkpoint_.step, ", ", config_.model.layers,
              " layers of ", config_.model.heads, " heads, width ", config_.model.d_model, "; ",
              windows_[0].size(), " windows of ", config_.model.max_length, " tokens a portion");
}

}  // namespace heed
