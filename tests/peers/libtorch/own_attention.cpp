// tests/example/own_attention.cpp in libtorch: own_attention RUN TEXT. Run it again, and it resumes after the
// last epoch.
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>
#include <set>
#include <sstream>

namespace data = torch::data;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

// Scalars as an event file of TensorBoard, which libtorch does not write.
class EventFile {
 public:
  explicit EventFile(const std::string& folder)
      : file_(folder + "/events.out.tfevents." + std::to_string(static_cast<int64_t>(now())) + ".host",
              std::ios::binary | std::ios::app) {
    record(number(1, now()) + text(3, "brain.Event:2"));
  }
  void scalar(const std::string& tag, float value, int64_t step) {
    std::string summary = text(1, tag) + char(2 << 3 | 5);
    summary.append(reinterpret_cast<const char*>(&value), 4);
    record(number(1, now()) + char(2 << 3) + varint(static_cast<uint64_t>(step)) + text(5, text(1, summary)));
  }

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  static std::string varint(uint64_t value) {
    std::string out;
    for (; value > 127; value >>= 7) out += static_cast<char>(value | 128);
    return out + static_cast<char>(value);
  }
  static std::string number(int field, double value) {
    std::string out(1, static_cast<char>(field << 3 | 1));
    return out.append(reinterpret_cast<const char*>(&value), 8);
  }
  static std::string text(int field, const std::string& value) {
    return static_cast<char>(field << 3 | 2) + varint(value.size()) + value;
  }
  // CRC-32C, masked as TFRecord wants it.
  static std::string checksum(const std::string& bytes) {
    uint32_t crc = ~0u;
    for (const char byte : bytes) {
      crc ^= static_cast<uint8_t>(byte);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    const uint32_t masked = (crc >> 15 | crc << 17) + 0xa282ead8u;
    return {reinterpret_cast<const char*>(&masked), 4};
  }
  void record(const std::string& event) {
    const uint64_t size = event.size();
    const std::string length(reinterpret_cast<const char*>(&size), 8);
    file_ << length << checksum(length) << event << checksum(event) << std::flush;
  }
  std::ofstream file_;
};

constexpr int64_t width = 32, heads = 2, hidden = 64, block = 32;

// Keys near a query weigh more: the score of a pair is -|q - k|^2 / (2 width sqrt(d)); |q|^2 changes no row.
struct NearAttentionImpl : nn::Module {
  explicit NearAttentionImpl(double near)
      : query(bare()),
        key(bare()),
        value(bare()),
        output(bare()),
        scale(1 / (near * std::sqrt(width / heads))) {
    register_module("query", query);
    register_module("key", key);
    register_module("value", value);
    register_module("output", output);
  }
  torch::Tensor forward(const torch::Tensor& x) {  // [B, T, width]
    const auto split = [&](const torch::Tensor& y) {
      return y.view({y.size(0), y.size(1), heads, -1}).transpose(1, 2);
    };
    const torch::Tensor q = split(query(x)), k = split(key(x)), v = split(value(x));
    const torch::Tensor sizes = k.square().sum(3).unsqueeze(2);  // [B, H, 1, T]
    const torch::Tensor later = torch::ones({x.size(1), x.size(1)}, torch::kBool).triu(1);
    const torch::Tensor scores = (q.matmul(k.transpose(2, 3)) - sizes * 0.5) * scale;
    const torch::Tensor weights = scores.masked_fill(later, -INFINITY).softmax(3);
    return output(torch::dropout(weights, 0.1, is_training()).matmul(v).transpose(1, 2).flatten(2));
  }
  static nn::LinearOptions bare() { return nn::LinearOptions(width, width).bias(false); }
  nn::Linear query, key, value, output;
  double scale;
};
TORCH_MODULE(NearAttention);

struct LanguageBlockImpl : nn::Module {
  LanguageBlockImpl() {
    register_module("attention", attention);
    register_module("up", up);
    register_module("down", down);
    register_module("attention_norm", attention_norm);
    register_module("forward_norm", forward_norm);
    register_module("dropout", dropout);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = x + dropout(attention(attention_norm(x)));
    return x + dropout(down(dropout(torch::relu(up(forward_norm(x))))));
  }
  NearAttention attention{0.5};
  nn::Linear up{width, hidden}, down{hidden, width};
  nn::LayerNorm attention_norm{nn::LayerNormOptions({width})}, forward_norm{nn::LayerNormOptions({width})};
  nn::Dropout dropout{0.1};
};
TORCH_MODULE(LanguageBlock);

struct LanguageModelImpl : nn::Module {
  explicit LanguageModelImpl(int64_t vocabulary) : tokens(vocabulary, width), output(width, vocabulary) {
    const torch::Tensor place = torch::arange(block).unsqueeze(1);
    const torch::Tensor rate = torch::exp(torch::arange(0, width, 2) * (-std::log(10000.0) / width));
    positions = torch::stack({torch::sin(place * rate), torch::cos(place * rate)}, 2).flatten(1);
    register_buffer("positions", positions);
    register_module("tokens", tokens);
    register_module("layer", layer);
    register_module("norm", norm);
    register_module("output", output);
    register_module("dropout", dropout);
  }
  torch::Tensor forward(const torch::Tensor& ids) {  // [B, T] -> [B, T, vocabulary]
    const torch::Tensor x = tokens(ids) + positions.slice(0, 0, ids.size(1));
    return output(norm(layer(dropout(x))));
  }
  nn::Embedding tokens;
  LanguageBlock layer;
  nn::LayerNorm norm{nn::LayerNormOptions({width})};
  nn::Linear output;
  nn::Dropout dropout{0.1};
  torch::Tensor positions;
};
TORCH_MODULE(LanguageModel);

// Windows of ids, with their targets one place later.
class WindowDataset : public data::datasets::Dataset<WindowDataset> {
 public:
  explicit WindowDataset(torch::Tensor ids) : ids_(ids) {}
  data::Example<> get(size_t i) override {
    const auto at = static_cast<int64_t>(i) * block;
    return {ids_.slice(0, at, at + block), ids_.slice(0, at + 1, at + block + 1)};
  }
  torch::optional<size_t> size() const override { return (ids_.size(0) - 1) / block; }

 private:
  torch::Tensor ids_;
};

torch::Tensor loss_of(LanguageModel& model, const data::Example<>& batch) {
  return F::cross_entropy(model(batch.data).flatten(0, 1), batch.target.flatten());
}

template <class Loader>
double perplexity(LanguageModel& model, Loader& loader) {
  const torch::NoGradGuard no_grad;
  model->eval();
  double sum = 0, count = 0;
  for (const auto& batch : loader) {
    const torch::Tensor loss = loss_of(model, batch);
    sum += loss.item<double>() * static_cast<double>(batch.target.numel());
    count += static_cast<double>(batch.target.numel());
  }
  return std::exp(sum / count);
}

int main(int, char** argv) {
  const std::filesystem::path run = argv[1];
  std::filesystem::create_directories(run / "tb");
  std::ostringstream text_stream;
  text_stream << std::ifstream(argv[2]).rdbuf();
  const std::string text = text_stream.str();
  std::map<char, int64_t> vocabulary;
  for (const char c : std::set<char>(text.begin(), text.end())) vocabulary.emplace(c, vocabulary.size());
  std::vector<int64_t> ids;
  for (const char c : text) ids.push_back(vocabulary.at(c));
  const torch::Tensor all = torch::tensor(ids);
  const int64_t cut = all.size(0) * 9 / 10;
  auto training = WindowDataset(all.slice(0, 0, cut)).map(data::transforms::Stack<>());
  auto held_out = WindowDataset(all.slice(0, cut)).map(data::transforms::Stack<>());
  const int64_t epochs = 4, steps = epochs * static_cast<int64_t>((*training.size() + 15) / 16), warmup = 20;
  const auto loader = data::make_data_loader<data::samplers::RandomSampler>(std::move(training), 16);
  const auto validation = data::make_data_loader<data::samplers::SequentialSampler>(std::move(held_out), 64);

  torch::manual_seed(1);
  LanguageModel model(static_cast<int64_t>(vocabulary.size()));
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
  int64_t first_epoch = 0, step = 0;
  double best = INFINITY;
  if (std::filesystem::exists(run / "last.pt")) {
    torch::serialize::InputArchive archive;
    archive.load_from(run / "last.pt");
    torch::serialize::InputArchive weights, moments;
    archive.read("model", weights);
    archive.read("optimizer", moments);
    model->load(weights);
    optimizer.load(moments);
    torch::Tensor state;
    archive.read("state", state);
    first_epoch = state[0].item<int64_t>();
    step = state[1].item<int64_t>();
    best = state[2].item<double>();
  }
  EventFile events(run / "tb");
  for (int64_t epoch = first_epoch; epoch < epochs; ++epoch) {
    torch::manual_seed(
        static_cast<uint64_t>(100 + epoch));  // so that a resumed run has the same order and dropout
    model->train();
    for (const auto& batch : *loader) {
      const double decay =
          0.5 * (1 + std::cos(std::numbers::pi * double(step - warmup) / double(steps - warmup)));
      const double rate = 1e-2 * (step < warmup ? double(step + 1) / warmup : decay);
      for (auto& group : optimizer.param_groups())
        static_cast<torch::optim::AdamWOptions&>(group.options()).lr(rate);
      optimizer.zero_grad();
      const torch::Tensor loss = loss_of(model, batch);
      loss.backward();
      nn::utils::clip_grad_norm_(model->parameters(), 1);
      optimizer.step();
      ++step;
      events.scalar("train_loss", loss.item<float>(), step);
      events.scalar("learning_rate", static_cast<float>(rate), step);
    }
    const double score = perplexity(model, *validation);
    events.scalar("valid_perplexity", static_cast<float>(score), step);
    std::fprintf(stderr, "epoch %d  perplexity %.2f\n", static_cast<int>(epoch + 1), score);
    if (score < best) torch::save(model, run / "best.pt");
    best = std::min(best, score);
    torch::serialize::OutputArchive archive, weights, moments;
    model->save(weights);
    optimizer.save(moments);
    archive.write("model", weights);
    archive.write("optimizer", moments);
    archive.write("state", torch::tensor({double(epoch + 1), double(step), best}, torch::kDouble));
    archive.save_to(run / "last.pt");
  }
  std::printf("perplexity %.2f after %d steps\n", best, static_cast<int>(step));
}
