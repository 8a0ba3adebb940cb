// tests/example/translate.cpp in libtorch: translate FOLDER translates lines of standard input. FOLDER holds
// what a program in Python has exported: model.pt (TorchScript with encode(ids) and decode(target, encoded)),
// source.txt and target.txt.
#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unordered_map>

constexpr int64_t unknown = 0, start = 2, end_id = 3, beam_size = 4, max_extra = 50;

// One word a line; its number is its id.
std::vector<std::string> read_vocabulary(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<std::string> words;
  for (std::string line; std::getline(file, line);) words.push_back(line);
  return words;
}

struct Beam {
  std::vector<int64_t> ids{start};
  double score = 0;
  bool ended() const { return ids.back() == end_id; }
  double normalised() const { return score / ((5 + double(ids.size() - 1)) / 6); }  // Wu et al. 2016, alpha 1
};

std::vector<int64_t> beam_search(torch::jit::Module& model, const torch::Tensor& source) {  // [1, S]
  const torch::Tensor encoded = model.run_method("encode", source).toTensor();              // [1, S, width]
  std::vector<Beam> beams(1), ended;
  for (int64_t length = 0; length < source.size(1) + max_extra && !beams.empty(); ++length) {
    std::vector<torch::Tensor> rows;
    for (const Beam& beam : beams) rows.push_back(torch::tensor(beam.ids));
    const auto count = static_cast<int64_t>(beams.size());
    const torch::Tensor logits =
        model.run_method("decode", torch::stack(rows), encoded.expand({count, -1, -1})).toTensor();
    const auto [values, ids] = logits.select(1, -1).log_softmax(-1).topk(beam_size, -1);
    std::vector<Beam> next;
    for (int64_t b = 0; b < count; ++b) {
      for (int64_t n = 0; n < beam_size; ++n) {
        Beam beam = beams[static_cast<size_t>(b)];
        beam.ids.push_back(ids[b][n].item<int64_t>());
        beam.score += values[b][n].item<double>();
        next.push_back(beam);
      }
    }
    std::sort(next.begin(), next.end(), [](const Beam& a, const Beam& b) { return a.score > b.score; });
    next.resize(std::min<size_t>(next.size(), beam_size));
    beams.clear();
    for (const Beam& beam : next) (beam.ended() ? ended : beams).push_back(beam);
    if (ended.size() >= beam_size) break;
  }
  ended.insert(ended.end(), beams.begin(), beams.end());
  return std::max_element(ended.begin(), ended.end(),
                          [](const Beam& a, const Beam& b) { return a.normalised() < b.normalised(); })
      ->ids;
}

int main(int, char** argv) try {
  const torch::NoGradGuard no_grad;
  const std::string folder = argv[1];
  torch::jit::Module model = torch::jit::load(folder + "/model.pt");
  model.eval();
  const std::vector<std::string> source = read_vocabulary(folder + "/source.txt"),
                                 target = read_vocabulary(folder + "/target.txt");
  std::unordered_map<std::string, int64_t> ids_of;
  for (size_t id = 0; id < source.size(); ++id) ids_of[source[id]] = static_cast<int64_t>(id);
  for (std::string line; std::getline(std::cin, line);) {
    std::string spaced;  // a mark is a word by itself
    for (const char c : line)
      spaced += std::ispunct(static_cast<unsigned char>(c)) ? std::string{' ', c, ' '} : std::string{c};
    std::vector<int64_t> ids{start};
    std::istringstream words(spaced);
    for (std::string word; words >> word;) ids.push_back(ids_of.count(word) ? ids_of[word] : unknown);
    ids.push_back(end_id);
    std::string text;
    if (ids.size() > 2) {
      for (const int64_t id : beam_search(model, torch::tensor(ids).unsqueeze(0))) {
        if (id == start || id == end_id) continue;
        const std::string& word = target.at(static_cast<size_t>(id));
        const bool mark = word.size() == 1 && std::ispunct(static_cast<unsigned char>(word[0]));
        text += (text.empty() || mark ? "" : " ") + word;
      }
    }
    std::cout << text << '\n';
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
