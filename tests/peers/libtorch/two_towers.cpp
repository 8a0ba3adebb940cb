// tests/example/two_towers.cpp in libtorch: two_towers PAIRS, a file of lines "English<tab>Italian".
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>

namespace data = torch::data;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t unknown = 0, pad = 1, start = 2, width = 64;

// Words and single punctuation marks of ASCII and Latin letters.
std::vector<std::string> words(const std::string& sentence) {
  std::vector<std::string> out;
  bool within = false;
  for (const char letter : sentence) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_word = std::isalnum(byte) != 0 || byte >= 128;
    if (is_word && within)
      out.back() += letter;
    else if (letter != ' ')
      out.emplace_back(1, letter);
    within = is_word;
  }
  return out;
}

struct Vocabulary {
  explicit Vocabulary(const std::vector<std::string>& sentences) {
    std::map<std::string, int64_t> counts;
    for (const std::string& sentence : sentences)
      for (const std::string& word : words(sentence)) ++counts[word];
    for (const auto& [word, count] : counts)
      if (count >= 2) ids.emplace(word, 3 + int64_t(ids.size()));
  }
  torch::Tensor encode(const std::string& sentence) const {
    std::vector<int64_t> out{start};
    for (const std::string& word : words(sentence))
      out.push_back(ids.contains(word) ? ids.at(word) : unknown);
    return torch::tensor(out);
  }
  int64_t size() const { return 3 + int64_t(ids.size()); }
  std::map<std::string, int64_t> ids;
};

struct Pair {
  torch::Tensor english, italian;
};

class PairDataset : public data::datasets::Dataset<PairDataset, Pair> {
 public:
  explicit PairDataset(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {}
  Pair get(size_t i) override { return pairs_[i]; }
  torch::optional<size_t> size() const override { return pairs_.size(); }

 private:
  std::vector<Pair> pairs_;
};

struct TowerImpl : nn::Module {
  explicit TowerImpl(int64_t vocabulary) : table(vocabulary, width) {
    const torch::Tensor place = torch::arange(64).unsqueeze(1);
    const torch::Tensor rate = torch::exp(torch::arange(0, width, 2) * (-std::log(10000.0) / width));
    positions = register_buffer(
        "positions", torch::stack({torch::sin(place * rate), torch::cos(place * rate)}, 2).flatten(1));
    register_module("table", table);
    register_module("encoder", encoder);
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor& ids) {  // [B, T] -> [B, 64] of length 1
    const torch::Tensor x = (table(ids) + positions.slice(0, 0, ids.size(1))).transpose(0, 1);
    return F::normalize(out(encoder(x, torch::Tensor(), ids.eq(pad))[0]), F::NormalizeFuncOptions().dim(1));
  }
  nn::Embedding table;
  nn::TransformerEncoder encoder{
      nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(width, 4).dim_feedforward(128), 1)};
  nn::Linear out{width, 64};
  torch::Tensor positions;
};
TORCH_MODULE(Tower);

struct TwoTowersImpl : nn::Module {
  TwoTowersImpl(int64_t english_words, int64_t italian_words)
      : english(english_words), italian(italian_words) {
    register_module("english", english);
    register_module("italian", italian);
    log_scale = register_parameter("log_scale", torch::tensor(std::log(10.0f)));
  }
  torch::Tensor forward(const std::vector<Pair>& pairs) {
    std::vector<torch::Tensor> left, right;
    for (const Pair& pair : pairs) {
      left.push_back(pair.english);
      right.push_back(pair.italian);
    }
    const torch::Tensor a = english(nn::utils::rnn::pad_sequence(left, true, pad));
    return a.matmul(italian(nn::utils::rnn::pad_sequence(right, true, pad)).t()) * log_scale.exp();
  }
  Tower english, italian;
  torch::Tensor log_scale;
};
TORCH_MODULE(TwoTowers);

int main(int, char** argv) {
  torch::manual_seed(1);
  std::vector<std::string> left, right;
  std::ifstream file(argv[1]);
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    left.push_back(line.substr(0, tab));
    right.push_back(line.substr(tab + 1));
  }
  const Vocabulary english(left), italian(right);
  std::vector<Pair> all;
  for (size_t i = 0; i < left.size(); ++i) all.push_back({english.encode(left[i]), italian.encode(right[i])});
  const std::vector<Pair> held_out(all.end() - 200, all.end());
  all.resize(all.size() - 200);
  const int64_t epochs = 12, total = epochs * int64_t(all.size() / 100);
  const auto loader = data::make_data_loader<data::samplers::RandomSampler>(
      PairDataset(all), data::DataLoaderOptions(100).drop_last(true));

  TwoTowers model(english.size(), italian.size());
  std::vector<torch::Tensor> matrices, vectors;
  for (const auto& item : model->named_parameters())
    if (item.key() != "log_scale") (item.value().dim() > 1 ? matrices : vectors).push_back(item.value());
  const auto group = [](const std::vector<torch::Tensor>& parameters, double decay) {
    return torch::optim::OptimizerParamGroup(
        parameters,
        std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(3e-3).weight_decay(decay)));
  };
  torch::optim::AdamW optimizer({group(matrices, 0.01), group(vectors, 0), group({model->log_scale}, 0)},
                                torch::optim::AdamWOptions(3e-3));
  int64_t step = 0;
  double best = 0;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    double sum = 0, count = 0;
    for (const std::vector<Pair>& batch : *loader) {
      ++step;
      const double done = double(step - 30) / double(total - 30);
      const double rate = step < 30 ? 3e-3 * double(step) / 30 : 1.5e-3 * (1 + std::cos(M_PI * done));
      for (size_t i = 0; i < 3; ++i)
        static_cast<torch::optim::AdamWOptions&>(optimizer.param_groups()[i].options())
            .lr(i == 2 ? 10 * rate : rate);
      optimizer.zero_grad();
      const torch::Tensor scores = model(batch), diagonal = torch::arange(scores.size(0));
      const torch::Tensor loss =
          (F::cross_entropy(scores, diagonal) + F::cross_entropy(scores.t(), diagonal)) / 2;
      loss.backward();
      optimizer.step();
      sum += loss.item<double>();
      ++count;
    }
    const torch::NoGradGuard no_grad;
    model->eval();
    const torch::Tensor scores = model(held_out);
    const double share =
        scores.argmax(1).eq(torch::arange(scores.size(0))).to(torch::kFloat64).mean().item<double>();
    model->train();
    best = std::max(best, share);
    std::fprintf(stderr, "epoch %d  loss %.3f  accuracy %.3f\n", int(epoch), sum / count, share);
  }
  std::printf("retrieved %.3f, factor %.1f\n", best, model->log_scale.exp().item<double>());
}
