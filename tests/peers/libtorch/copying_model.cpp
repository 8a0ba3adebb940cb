// A model for translate.cpp to run, which copies its input: copying_model FOLDER writes model.pt and both
// vocabularies.
#include <torch/script.h>

#include <fstream>

int main(int, char** argv) {
  const std::string folder = argv[1];
  torch::jit::Module model("copying");
  // decode: after n ids the next one is the source's id n, with a logit of 9.
  model.define(R"(
    def encode(self, ids):
      return ids.unsqueeze(-1).to(6)
    def decode(self, target, encoded):
      ids = encoded.squeeze(-1).to(4)
      return torch.one_hot(ids[:, :target.size(1) + 1], 8).to(6)[:, 1:] * 9.0
  )");
  model.save(folder + "/model.pt");
  for (const char* name : {"/source.txt", "/target.txt"})
    std::ofstream(folder + name) << "[UNK]\n[PAD]\n[SOS]\n[EOS]\nAnna\nreads\nbooks\n.\n";
}
