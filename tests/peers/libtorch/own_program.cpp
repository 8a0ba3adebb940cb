// tests/example/own_program.cpp in libtorch, as far as a program would go by itself: train, resume, evaluate,
// count.
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>

namespace nn = torch::nn;

struct LetterSettings {
  int64_t letters = 15, steps = 200, seed = 1, batch = 32, width = 64, heads = 4;
  double rate = 1e-3;
  // Called with the name of each: for the command line, and for the file of a run.
  void each(const std::function<void(const std::string&, int64_t&)>& integer,
            const std::function<void(const std::string&, double&)>& real) {
    integer("letters", letters);
    integer("steps", steps);
    integer("seed", seed);
    integer("batch", batch);
    integer("width", width);
    integer("heads", heads);
    real("lr", rate);
  }
};

void set_all(LetterSettings& settings, std::map<std::string, std::string> values) {
  const auto take = [&](const std::string& name) {
    const auto found = values.find(name);
    const std::string text = found == values.end() ? "" : found->second;
    if (found != values.end()) values.erase(found);
    return text;
  };
  settings.each(
      [&](const std::string& name, int64_t& value) {
        if (const std::string text = take(name); !text.empty()) value = std::stoll(text);
      },
      [&](const std::string& name, double& value) {
        if (const std::string text = take(name); !text.empty()) value = std::stod(text);
      });
  if (!values.empty()) throw std::invalid_argument("unknown option --" + values.begin()->first);
}

// The task: which of four letters does a sequence have most often? Batch n is a function of (seed, n).
struct LetterBatch {
  torch::Tensor ids, targets;  // [B, letters], [B]
};
LetterBatch draw(const LetterSettings& settings, int64_t number, int64_t rows) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(settings.seed * 1000003 + number));
  const torch::Tensor ids = torch::randint(0, 4, {rows, settings.letters}, generator, torch::kLong);
  return {ids, nn::functional::one_hot(ids, 4).sum(1).argmax(1)};
}

struct LetterNetImpl : nn::Module {
  explicit LetterNetImpl(const LetterSettings& settings)
      : tokens(4, settings.width),
        encoder(
            nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(settings.width, settings.heads)
                                              .dim_feedforward(4 * settings.width)
                                              .dropout(0.1),
                                          1)),
        classes(settings.width, 4) {
    register_module("tokens", tokens);
    register_module("encoder", encoder);
    register_module("classes", classes);
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    return classes(encoder(tokens(ids).transpose(0, 1)).mean(0));
  }
  nn::Embedding tokens;
  nn::TransformerEncoder encoder;
  nn::Linear classes;
};
TORCH_MODULE(LetterNet);

double accuracy(LetterNet& net, const LetterSettings& settings) {
  const torch::NoGradGuard no_grad;
  net->eval();
  const LetterBatch all = draw(settings, 0, 200);  // number 0 is never trained on
  return net(all.ids).argmax(1).eq(all.targets).to(torch::kFloat).mean().item<double>();
}

int train(const std::filesystem::path& run, LetterSettings& settings) {
  torch::manual_seed(static_cast<uint64_t>(settings.seed));
  LetterNet net(settings);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(settings.rate));
  int64_t step = 0;
  if (std::filesystem::exists(run / "model.pt")) {
    torch::load(net, run / "model.pt");
    torch::load(optimizer, run / "optimizer.pt");
    std::ifstream(run / "step") >> step;
  }
  std::ofstream metrics(run / "metrics.csv", std::ios::app);
  while (step < settings.steps) {
    net->train();
    const LetterBatch batch = draw(settings, ++step, settings.batch);
    optimizer.zero_grad();
    const torch::Tensor loss = nn::functional::cross_entropy(net(batch.ids), batch.targets);
    loss.backward();
    optimizer.step();
    metrics << step << ',' << loss.item<double>() << '\n';
    if (step % 50 != 0 && step != settings.steps) continue;
    std::fprintf(stderr, "step %d  loss %.3f  accuracy %.3f\n", static_cast<int>(step), loss.item<double>(),
                 accuracy(net, settings));
    torch::save(net, run / "model.pt");
    torch::save(optimizer, run / "optimizer.pt");
    std::ofstream(run / "step") << step;
  }
  std::printf("accuracy %.3f\n", accuracy(net, settings));
  return 0;
}

LetterSettings settings_of(const std::filesystem::path& run) {
  std::map<std::string, std::string> values;
  std::ifstream file(run / "settings");
  if (!file) throw std::invalid_argument("there is no run " + run.string());
  for (std::string name, value; file >> name >> value;) values[name] = value;
  LetterSettings settings;
  set_all(settings, values);
  return settings;
}

int run_command(const std::vector<std::string>& words, const std::map<std::string, std::string>& options) {
  if (words.size() != 2 || (words[0] != "train" && !options.empty()))
    throw std::invalid_argument(
        "usage: own_program train FOLDER [--NAME VALUE ...] | resume RUN | evaluate RUN | count TEXT");
  LetterSettings settings;
  if (words[0] == "train") {
    set_all(settings, options);
    if (!std::filesystem::create_directories(words[1])) throw std::invalid_argument(words[1] + " is taken");
    std::ofstream file(std::filesystem::path(words[1]) / "settings");
    settings.each([&](const std::string& name, int64_t& value) { file << name << ' ' << value << '\n'; },
                  [&](const std::string& name, double& value) { file << name << ' ' << value << '\n'; });
    file.close();
    return train(words[1], settings);
  }
  if (words[0] == "resume") {
    settings = settings_of(words[1]);
    return train(words[1], settings);
  }
  if (words[0] == "evaluate") {
    settings = settings_of(words[1]);
    LetterNet net(settings);
    torch::load(net, std::filesystem::path(words[1]) / "model.pt");
    std::printf("accuracy %.3f\n", accuracy(net, settings));
    return 0;
  }
  if (words[0] != "count") throw std::invalid_argument("unknown command " + words[0]);
  for (const char c : {'a', 'b', 'c', 'd'})
    std::printf("%c %td\n", c, std::count(words[1].begin(), words[1].end(), c));
  return 0;
}

int main(int count, char** arguments) try {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word.starts_with("--") && i + 1 < count)
      options[word.substr(2)] = arguments[++i];
    else
      words.push_back(word);
  }
  return run_command(words, options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "own_program: %s\n", error.what());
  return 1;
}
