// tests/example/csv_classifier.cpp in libtorch: csv_classifier plants.csv
#include <torch/torch.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace data = torch::data;

struct PlantTable {
  torch::Tensor numbers, classes;  // [n, features], i64 [n]
  std::map<std::string, int64_t> names;
};

// Cells between commas; quotes mean nothing.
PlantTable read_plants(const std::string& path, const std::string& target) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  const auto cells = [](const std::string& line) {
    std::vector<std::string> out;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) out.push_back(cell);
    return out;
  };
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> header = cells(line);
  std::vector<std::string> labels;
  std::vector<float> numbers;
  for (int row = 2; std::getline(file, line); ++row) {
    const std::vector<std::string> values = cells(line);
    if (values.size() != header.size())
      throw std::runtime_error(path + ":" + std::to_string(row) + ": not as many cells as the header");
    for (size_t i = 0; i < header.size(); ++i) {
      if (header[i] == target)
        labels.push_back(values[i]);
      else
        numbers.push_back(std::stof(values[i]));
    }
  }
  PlantTable table;
  for (const std::string& label : labels) table.names[label] = 0;
  int64_t next = 0;
  for (auto& [name, id] : table.names) id = next++;
  std::vector<int64_t> ids;
  for (const std::string& label : labels) ids.push_back(table.names[label]);
  const auto rows = static_cast<int64_t>(ids.size());
  table.numbers = torch::tensor(numbers).reshape({rows, -1});
  table.classes = torch::tensor(ids);
  return table;
}

class PlantDataset : public data::datasets::Dataset<PlantDataset> {
 public:
  PlantDataset(torch::Tensor numbers, torch::Tensor classes) : numbers_(numbers), classes_(classes) {}
  data::Example<> get(size_t i) override { return {numbers_[i], classes_[i]}; }
  torch::optional<size_t> size() const override { return numbers_.size(0); }

 private:
  torch::Tensor numbers_, classes_;
};

struct PlantNetImpl : torch::nn::Module {
  PlantNetImpl(int64_t features, int64_t species) : hidden(features, 32), classes(32, species) {
    register_module("hidden", hidden);
    register_module("dropout", dropout);
    register_module("classes", classes);
  }
  torch::Tensor forward(const torch::Tensor& x) { return classes(dropout(torch::relu(hidden(x)))); }
  torch::nn::Linear hidden, classes;
  torch::nn::Dropout dropout{0.1};
};
TORCH_MODULE(PlantNet);

template <class Loader>
std::pair<double, double> evaluate(PlantNet& net, Loader& loader) {
  const torch::NoGradGuard no_grad;
  net->eval();
  double right = 0, loss = 0, count = 0;
  for (const auto& batch : loader) {
    const torch::Tensor logits = net(batch.data), target = batch.target;
    right += logits.argmax(1).eq(target).sum().item<double>();
    loss += torch::nn::functional::cross_entropy(logits, target).item<double>() * double(target.size(0));
    count += double(target.size(0));
  }
  return {right / count, loss / count};
}

int main(int, char** argv) {
  torch::manual_seed(1);
  const PlantTable table = read_plants(argv[1], "species");
  const torch::Tensor order = torch::randperm(table.classes.size(0));
  const int64_t cut = order.size(0) * 8 / 10;
  const auto part = [&](int64_t first, int64_t last) {
    const torch::Tensor rows = order.slice(0, first, last);
    return PlantDataset(table.numbers.index({rows}), table.classes.index({rows}))
        .map(data::transforms::Stack<>());
  };
  const auto loader = data::make_data_loader<data::samplers::RandomSampler>(part(0, cut), 16);
  const auto validation =
      data::make_data_loader<data::samplers::SequentialSampler>(part(cut, order.size(0)), 32);

  PlantNet net(table.numbers.size(1), static_cast<int64_t>(table.names.size()));
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
  for (int epoch = 1; epoch <= 60; ++epoch) {
    net->train();
    for (const auto& batch : *loader) {
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(net(batch.data), batch.target).backward();
      optimizer.step();
    }
    const auto [accuracy, loss] = evaluate(net, *validation);
    std::fprintf(stderr, "epoch %d  accuracy %.2f  loss %.3f\n", epoch, accuracy, loss);
  }
  std::printf("accuracy %.2f\n", evaluate(net, *validation).first);
  torch::save(net, "plants.pt");
}
