// tests/example/reversal_maps.cpp in libtorch: reversal_maps cross.svg
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>

namespace data = torch::data;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t start = 10, end_id = 11, width = 32;  // ids 0 to 9 are digits

struct Reversal {
  torch::Tensor digits, in, out;
};

// Example i: four to eight digits, the same backwards behind `start`, and backwards before `end_id`.
class ReversalDataset : public data::datasets::Dataset<ReversalDataset, Reversal> {
 public:
  Reversal get(size_t i) override {
    std::mt19937 random(static_cast<unsigned>(i));
    std::vector<int64_t> digits;
    for (size_t n = 0; n < 4 + i % 5; ++n)
      digits.push_back(std::uniform_int_distribution<int64_t>(0, 9)(random));
    std::vector<int64_t> in{start}, out(digits.rbegin(), digits.rend());
    in.insert(in.end(), out.begin(), out.end());
    out.push_back(end_id);
    return {torch::tensor(digits), torch::tensor(in), torch::tensor(out)};
  }
  torch::optional<size_t> size() const override { return 1024; }
};

struct PaddedBatch {
  torch::Tensor digits, padding, in, out;  // [B, S], bool [B, S], [B, T], [B, T] with -1 behind the end
};

PaddedBatch padded(const std::vector<Reversal>& examples) {
  std::vector<torch::Tensor> digits, in, out;
  for (const Reversal& one : examples) {
    digits.push_back(one.digits);
    in.push_back(one.in);
    out.push_back(one.out);
  }
  const torch::Tensor source = nn::utils::rnn::pad_sequence(digits, true, -1);
  return {source.clamp_min(0), source.lt(0), nn::utils::rnn::pad_sequence(in, true, 0),
          nn::utils::rnn::pad_sequence(out, true, -1)};
}

struct ReverserImpl : nn::Module {
  ReverserImpl() {
    const torch::Tensor place = torch::arange(16).unsqueeze(1);
    const torch::Tensor rate = torch::exp(torch::arange(0, width, 2) * (-std::log(10000.0) / width));
    positions = register_buffer(
        "positions", torch::stack({torch::sin(place * rate), torch::cos(place * rate)}, 2).flatten(1));
    register_module("source", source);
    register_module("target", target);
    register_module("encoder", encoder);
    register_module("decoder", decoder);
    register_module("output", output);
  }
  // Modules of libtorch take [T, B, width].
  torch::Tensor embedded(nn::Embedding& table, const torch::Tensor& ids) {
    return (table(ids) + positions.slice(0, 0, ids.size(1))).transpose(0, 1);
  }
  torch::Tensor forward(const PaddedBatch& batch) {
    const torch::Tensor encoded = encoder(embedded(source, batch.digits), torch::Tensor(), batch.padding);
    const torch::Tensor later = nn::TransformerImpl::generate_square_subsequent_mask(batch.in.size(1));
    const torch::Tensor decoded =
        decoder(embedded(target, batch.in), encoded, later, torch::Tensor(), torch::Tensor(), batch.padding);
    return output(decoded.transpose(0, 1));  // [B, T, 12]
  }
  // The decoder layer keeps no map: its parts are called one after the other. [B, H, T, S]
  torch::Tensor cross_map(const PaddedBatch& batch) {
    const torch::Tensor encoded = encoder(embedded(source, batch.digits), torch::Tensor(), batch.padding);
    const torch::Tensor later = nn::TransformerImpl::generate_square_subsequent_mask(batch.in.size(1));
    const torch::Tensor x = embedded(target, batch.in);
    const torch::Tensor y =
        decoder->norm1(x + std::get<0>(decoder->self_attn(x, x, x, torch::Tensor(), false, later)));
    return std::get<1>(
        decoder->multihead_attn(y, encoded, encoded, batch.padding, true, torch::Tensor(), false));
  }
  nn::Embedding source{10, width}, target{12, width};
  nn::TransformerEncoder encoder{nn::TransformerEncoderOptions(
      nn::TransformerEncoderLayerOptions(width, 2).dim_feedforward(64).dropout(0), 1)};
  nn::TransformerDecoderLayer decoder{
      nn::TransformerDecoderLayerOptions(width, 2).dim_feedforward(64).dropout(0)};
  nn::Linear output{width, 12};
  torch::Tensor positions;
};
TORCH_MODULE(Reverser);

// Rows are queries, columns keys; the darker, the larger the weight.
void write_svg(const std::string& path, const torch::Tensor& map, const std::vector<std::string>& queries,
               const std::vector<std::string>& keys) {
  std::ofstream file(path);
  const size_t cell = 24, margin = 48;
  file << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << margin + keys.size() * cell
       << "\" height=\"" << margin + queries.size() * cell
       << "\" font-family=\"sans-serif\" font-size=\"12\">\n";
  const auto label = [&](size_t x, size_t y, const std::string& text) {
    file << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"middle\">" << text << "</text>\n";
  };
  for (size_t k = 0; k < keys.size(); ++k) label(margin + k * cell + cell / 2, margin - 8, keys[k]);
  for (size_t q = 0; q < queries.size(); ++q) {
    label(margin / 2, margin + q * cell + 16, queries[q]);
    for (size_t k = 0; k < keys.size(); ++k) {
      const float weight = map[static_cast<int64_t>(q)][static_cast<int64_t>(k)].item<float>();
      file << "<rect x=\"" << margin + k * cell << "\" y=\"" << margin + q * cell << "\" width=\"" << cell
           << "\" height=\"" << cell << "\" fill=\"#1f4e9c\" fill-opacity=\"" << weight << "\"/>\n";
    }
  }
  file << "</svg>\n";
}

int main(int, char** argv) {
  torch::manual_seed(1);
  const auto loader =
      data::make_data_loader<data::samplers::RandomSampler>(ReversalDataset(), data::DataLoaderOptions(32));
  Reverser model;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(5e-3));
  for (int epoch = 0; epoch < 12; ++epoch) {
    double sum = 0, count = 0;
    for (const std::vector<Reversal>& examples : *loader) {
      const PaddedBatch batch = padded(examples);
      optimizer.zero_grad();
      const torch::Tensor loss = F::cross_entropy(model(batch).flatten(0, 1), batch.out.flatten(),
                                                  F::CrossEntropyFuncOptions().ignore_index(-1));
      loss.backward();
      optimizer.step();
      sum += loss.item<double>();
      ++count;
    }
    std::fprintf(stderr, "epoch %d  loss %.3f\n", epoch + 1, sum / count);
  }
  const torch::NoGradGuard no_grad;
  model->eval();
  double right = 0, count = 0;
  for (const std::vector<Reversal>& examples : *loader) {
    const PaddedBatch batch = padded(examples);
    right += model(batch).argmax(2).eq(batch.out).sum().item<double>();
    count += batch.out.ge(0).sum().item<double>();
  }
  std::printf("accuracy %.3f\n", right / count);

  const torch::Tensor digits = torch::tensor({3, 1, 4, 1, 5}).unsqueeze(0);
  const torch::Tensor reversed = torch::tensor({int(start), 5, 1, 4, 1, 3}).unsqueeze(0);
  const torch::Tensor map = model->cross_map({digits, digits.lt(0), reversed, {}})[0][0];
  write_svg(argv[1], map, {"5", "1", "4", "1", "3", "end"}, {"3", "1", "4", "1", "5"});
}
