// Language models, translators and classifiers on random tokens.
#include "heed/train/bench/models.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "heed/attention/variant.h"
#include "heed/autograd/autocast.h"
#include "heed/nn/encoder_models.h"

namespace heed::bench {
namespace {

std::vector<int32_t> random_ids(int64_t count, int64_t first, int64_t vocabulary, Rng& rng) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(first + rng.below(vocabulary - first));
  return ids;
}

Rng fresh(const Config& config) { return Rng(static_cast<uint64_t>(config.train.seed)); }

/// A log-normal length of this mean.
int64_t length(double mean, double deviation, int64_t min_length, int64_t max_length, Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
  const double z = radius * std::cos(2 * std::numbers::pi * rng.uniform());
  const double drawn = mean * std::exp(deviation * z - deviation * deviation / 2);
  return std::clamp<int64_t>(std::llround(drawn), min_length, max_length);
}

Workload language_model(std::shared_ptr<Config> config, int64_t vocabulary) {
  Rng rng = fresh(*config);
  const int64_t batch = config->train.batch_size, length = config->model.max_length;
  auto model = std::make_unique<DecoderOnly>(config->model, vocabulary,
                                             attention_factory(config->attention.decoder), rng);
  const auto text = std::make_shared<std::vector<int32_t>>(random_ids(200000, 0, vocabulary, rng));
  Workload work;
  const DecoderOnly* net = model.get();
  work.batch = [=](int64_t step) {
    std::vector<int32_t> in, out;
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t room = static_cast<int64_t>(text->size()) - length - 1;
      const auto from = text->begin() + ((step * batch + b) * 7919) % room;
      in.insert(in.end(), from, from + length);
      out.insert(out.end(), from + 1, from + 1 + length);
    }
    const Shape shape{batch, length};
    return Batch{{Tensor::of<int32_t>(in, shape), Tensor::of<int32_t>(out, shape)}};
  };
  work.loss = [=](const Batch& given, const ForwardContext& context) {
    return net->token_loss(net->hidden(given.tensors[0], context), given.tensors[1]);
  };
  work.tokens = [=](int64_t) { return static_cast<double>(batch * length); };
  work.model = std::move(model);
  work.config = std::move(config);
  return work;
}

}  // namespace

Workload character_model(std::shared_ptr<Config> config) { return language_model(std::move(config), 65); }

Workload gpt2_model(std::shared_ptr<Config> config) { return language_model(std::move(config), 50304); }

namespace {

constexpr int64_t source_words = 15698, target_words = 22463;
constexpr int32_t pad = 1;
constexpr int64_t first_word = 4;

/// Sentence pairs of one step, padded.
struct Sentences {
  int64_t source_length = 0, target_length = 0;
  std::vector<int32_t> source = {}, target_in = {}, target_out = {}, source_lengths = {};
  std::vector<int32_t> wanted = {}, places = {};  ///< real target tokens and their positions
};

struct Lengths {
  int64_t source, target;
};

/// Lengths of pairs: a translation is about as long as its source.
std::vector<Lengths> draw_lengths(int64_t count, int64_t max_length, Rng& rng) {
  std::vector<Lengths> out;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t source = length(30, 0.7, 4, max_length, rng);
    out.push_back({source, length(static_cast<double>(source), 0.15, 4, max_length, rng)});
  }
  return out;
}

Sentences sentences(std::span<const Lengths> lengths, int64_t fixed, Rng& rng) {
  Sentences s{.source_length = fixed, .target_length = fixed};
  for (const Lengths& one : lengths) {
    s.source_length = std::max(s.source_length, one.source);
    s.target_length = std::max(s.target_length, one.target);
  }
  for (const Lengths& one : lengths) {
    std::vector<int32_t> source = random_ids(one.source, first_word, source_words, rng);
    source.resize(static_cast<size_t>(s.source_length), pad);
    s.source.insert(s.source.end(), source.begin(), source.end());
    s.source_lengths.push_back(static_cast<int32_t>(one.source));
    std::vector<int32_t> target = random_ids(one.target, first_word, target_words, rng);
    for (int64_t t = 0; t < s.target_length; ++t) {
      const bool real = t < one.target;
      if (real) {
        s.places.push_back(static_cast<int32_t>(s.target_out.size()));
        s.wanted.push_back(target[static_cast<size_t>(t)]);
      }
      s.target_in.push_back(real ? (t == 0 ? 2 : target[static_cast<size_t>(t - 1)]) : pad);
      s.target_out.push_back(real ? target[static_cast<size_t>(t)] : pad);
    }
  }
  return s;
}

enum class Logits { of_all, of_real };

Workload translator(std::shared_ptr<Config> config, std::vector<Sentences> steps, Logits which) {
  Rng rng = fresh(*config);
  auto model = std::make_unique<EncoderDecoder>(
      config->model, source_words, target_words,
      EncoderDecoder::Attentions{attention_factory(config->attention.encoder),
                                 attention_factory(config->attention.decoder),
                                 attention_factory(config->attention.cross)},
      rng);
  const auto data = std::make_shared<std::vector<Sentences>>(std::move(steps));
  Workload work;
  work.period = static_cast<int64_t>(data->size());
  const EncoderDecoder* net = model.get();
  // Source, its lengths, target in, target out; if only real targets are scored, their positions and ids.
  work.batch = [=](int64_t step) {
    const Sentences& s = (*data)[static_cast<size_t>(step % static_cast<int64_t>(data->size()))];
    const auto rows = static_cast<int64_t>(s.source_lengths.size());
    const Shape out{rows, s.target_length}, real{static_cast<int64_t>(s.wanted.size())};
    return Batch{{Tensor::of<int32_t>(s.source, Shape{rows, s.source_length}),
                  Tensor::of<int32_t>(s.source_lengths, Shape{rows}), Tensor::of<int32_t>(s.target_in, out),
                  Tensor::of<int32_t>(s.target_out, out), Tensor::of<int32_t>(s.places, real),
                  Tensor::of<int32_t>(s.wanted, real)}};
  };
  work.loss = [=, smoothing = config->train.label_smoothing](const Batch& given,
                                                             const ForwardContext& context) {
    const std::vector<Tensor>& x = given.tensors;
    const Tensor encoded = net->encode(x[0], x[1], context);
    const Tensor hidden = widened(net->decode(x[2], encoded, x[1], context));
    if (which == Logits::of_all) return net->token_loss(hidden, x[3], smoothing, pad);
    const Tensor kept = embedding(reshape(hidden, Shape{-1, hidden.extent(-1)}), x[4]);
    return net->token_loss(kept, x[5], smoothing);
  };
  work.tokens = [=](int64_t step) {
    const auto at = static_cast<size_t>(step % static_cast<int64_t>(data->size()));
    return static_cast<double>((*data)[at].wanted.size());
  };
  work.model = std::move(model);
  work.config = std::move(config);
  return work;
}

/// Steps of `batch` sentences, all padded to max_length.
std::vector<Sentences> padded_steps(const Config& config) {
  Rng rng = fresh(config);
  const int64_t max_length = config.model.max_length;
  std::vector<Sentences> steps;
  for (int64_t i = 0; i < 4; ++i)
    steps.push_back(sentences(draw_lengths(config.train.batch_size, max_length - 2, rng), max_length, rng));
  return steps;
}

}  // namespace

Workload translator_literal(std::shared_ptr<Config> config) {
  std::vector<Sentences> steps = padded_steps(*config);
  return translator(std::move(config), std::move(steps), Logits::of_all);
}

Workload translator_padded(std::shared_ptr<Config> config) {
  std::vector<Sentences> steps = padded_steps(*config);
  return translator(std::move(config), std::move(steps), Logits::of_real);
}

Workload translator_real(std::shared_ptr<Config> config) {
  Rng rng = fresh(*config);
  const auto batch = static_cast<size_t>(config->train.batch_size);
  std::vector<Lengths> lengths =
      draw_lengths(16 * static_cast<int64_t>(batch), config->model.max_length - 2, rng);
  // The longest batch first, so that the first step allocates the peak.
  std::sort(lengths.begin(), lengths.end(), [](const Lengths& a, const Lengths& b) {
    return a.target != b.target ? a.target > b.target : a.source > b.source;
  });
  std::vector<Sentences> steps;
  for (size_t i = 0; i < lengths.size(); i += batch)
    steps.push_back(sentences(std::span(lengths).subspan(i, batch), 0, rng));
  return translator(std::move(config), std::move(steps), Logits::of_real);
}

namespace {

Workload classifier(std::shared_ptr<Config> config, const Classifier::Options& options) {
  Rng rng = fresh(*config);
  const int64_t batch = config->train.batch_size, length = config->model.max_length;
  auto model =
      std::make_unique<Classifier>(config->model, options, attention_factory(config->attention.encoder), rng);
  Tensor x;
  if (options.vocabulary > 0) {
    x = Tensor::of<int32_t>(random_ids(batch * length, 0, options.vocabulary, rng), Shape{batch, length});
  } else {
    x = Tensor(Shape{batch, length, options.features});
    fill_uniform(x, 0, 1, rng);
  }
  x = x.to(Device::cpu);  // from where Prefetch copies it to the device
  const Tensor classes =
      Tensor::of<int32_t>(random_ids(batch, 0, options.classes, rng), Shape{batch}, Device::cpu);
  Workload work;
  const Classifier* net = model.get();
  work.batch = [=](int64_t) { return Batch{{x.to(default_device), classes.to(default_device)}}; };
  work.loss = [=](const Batch& given, const ForwardContext& context) {
    return cross_entropy((*net)(given.tensors[0], {}, context), given.tensors[1]);
  };
  work.tokens = [=](int64_t) { return static_cast<double>(batch * length); };
  work.model = std::move(model);
  work.config = std::move(config);
  return work;
}

}  // namespace

Workload token_classifier(std::shared_ptr<Config> config) {
  return classifier(std::move(config), {.vocabulary = 256, .classes = 10});
}

Workload patch_classifier(std::shared_ptr<Config> config) {
  return classifier(std::move(config), {.features = 16, .classes = 10});
}

}  // namespace heed::bench
