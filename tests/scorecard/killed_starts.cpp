// Row L6: starts from given weights (train --from, import) that are killed before the weights are in place.
#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/system_calls.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

constexpr const char* name = "begun";

/// A command that begins a run from weights that are there.
struct Start {
  std::vector<std::string> words;
  std::string until;  ///< the file whose first call ends the start; empty: all calls belong to it
  bool trains;        ///< and so can be resumed
};

/// Tensors of GPT-2's names, with numbers of their own, as a file of safetensors.
class Gpt2Tensors {
 public:
  void add(const std::string& tensor, const std::vector<int64_t>& shape) {
    Json extents = Json::List();
    int64_t count = 1;
    for (const int64_t extent : shape) {
      extents.push(extent);
      count *= extent;
    }
    std::uniform_real_distribution<float> number(-0.3F, 0.3F);
    const size_t begin = bytes_.size();
    for (int64_t i = 0; i < count; ++i) {
      const float value = number(generator_);
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    Json offsets = Json::List();
    offsets.push(begin).push(bytes_.size());
    header_.set(tensor, Json::object({{"dtype", "F32"}, {"shape", extents}, {"data_offsets", offsets}}));
  }
  std::string file() const {
    std::string header = header_.dump();
    header.resize((header.size() + 7) / 8 * 8, ' ');
    std::string out;
    for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> 8 * i & 0xff);
    return out + header + bytes_;
  }

 private:
  std::mt19937 generator_{3};
  Json header_ = Json::object();
  std::string bytes_;
};

/// The letters that spell the 256 bytes in GPT-2's vocabulary, in UTF-8.
Json byte_letters() {
  Json out = Json::object();
  int64_t id = 0;
  int hidden = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    const int code = visible ? byte : hidden++;
    const std::string letter = code < 0x80 ? std::string(1, static_cast<char>(code))
                                           : std::string{static_cast<char>(0xC0 | code >> 6),
                                                         static_cast<char>(0x80 | (code & 0x3F))};
    out.set(letter, id++);
  }
  return out;
}

/// A GPT-2 of one block of width 8 that reads bytes.
void write_gpt2(const Path& folder) {
  constexpr int64_t width = 8, hidden = 16, positions = 16, tokens = 256;
  Gpt2Tensors tensors;
  tensors.add("wte.weight", {tokens, width});
  tensors.add("wpe.weight", {positions, width});
  for (const char* norm : {"h.0.ln_1", "h.0.ln_2", "ln_f"}) {
    tensors.add(text(norm, ".weight"), {width});
    tensors.add(text(norm, ".bias"), {width});
  }
  const auto linear = [&](const char* layer, int64_t in, int64_t out) {
    tensors.add(text("h.0.", layer, ".weight"), {in, out});
    tensors.add(text("h.0.", layer, ".bias"), {out});
  };
  linear("attn.c_attn", width, 3 * width);
  linear("attn.c_proj", width, width);
  linear("mlp.c_fc", width, hidden);
  linear("mlp.c_proj", hidden, width);
  io::make_directories(folder);
  io::write(folder / "config.json", Json::object({{"model_type", "gpt2"},
                                                  {"activation_function", "gelu_new"},
                                                  {"vocab_size", tokens},
                                                  {"n_positions", positions},
                                                  {"n_embd", width},
                                                  {"n_layer", 1},
                                                  {"n_head", 2},
                                                  {"n_inner", hidden}})
                                        .dump());
  io::write(folder / "model.safetensors", tensors.file());
  io::write(folder / "vocab.json", byte_letters().dump());
  io::write(folder / "merges.txt", "#version: 0.2\n");
}

/// The starts, with the run and the model that they begin from planted.
std::vector<Start> starts(const Scene& scene) {
  write_gpt2(scene.room / "gpt2");
  const Ended end = run(scene.heed(tiny_train(scene, "base", {"--out", ".", "--steps", "6"})));
  if (!end.ok()) fail(Fault::internal, "the run to begin from failed: ", end.said());
  return {{{"train", "--from", "base", "--name", name, "--lr", "1e-2", "--checkpoint-every", "3", "--quiet",
            "--threads", "1"},
           "metrics.jsonl",
           true},
          {{"import", "gpt2", "--name", name, "--threads", "1"}, "", false}};
}

/// What is wrong after a kill: a run that does not get the weights of an undisturbed one, be it resumed or,
/// where there is none of that name, begun again.
std::string aftermath(const Scene& scene, const Start& start, const std::string& hash) {
  const Path folder = run_of(scene, name);
  const bool is_there = io::exists(folder);
  if (start.trains || !is_there) {
    const Ended end = run(scene.heed(is_there ? tiny_resume(name) : start.words));
    if (!end.ok()) return text(is_there ? "resume: " : "again: ", end.said());
  }
  if (weights_hash(folder) != hash)
    return text("it has other weights", start.trains && is_there ? ", resumed" : "");
  return leftovers(scene);
}

}  // namespace

Result starts_killed_at_every_call(const Scene& scene) {
  if (const std::string why_not = why_no_strace(); !why_not.empty()) return skip(why_not);
  Tally tally;
  int64_t named = 0;
  for (const Start& start : starts(scene)) {
    io::remove_all(scene.room / "runs");
    const std::vector<SystemCall> calls = calls_of(scene, start.words, changing_calls, start.until);
    const std::string hash = weights_hash(run_of(scene, name));
    const int64_t stride = scene.amount(std::max<int64_t>(static_cast<int64_t>(calls.size()) / 6, 1), 1);
    for (size_t i = static_cast<size_t>(scene.seed) % static_cast<size_t>(stride); i < calls.size();
         i += static_cast<size_t>(stride)) {
      io::remove_all(scene.room / "runs");
      const Ended end = run(killed_at(scene, start.words, calls[i]));
      const bool killed = end.signal == 9 || end.code == 137;
      named += killed && io::exists(run_of(scene, name)) ? 1 : 0;
      tally.add(text(start.words[0], " killed at ", calls[i].name, " ", calls[i].when),
                killed ? aftermath(scene, start, hash) : "the kill did not come: " + end.said());
    }
  }
  return tally.result(text(" kills: ", named,
                           " left a run, the others none; all got the same weights, resumed "
                           "or begun again, and nothing was left behind"));
}

}  // namespace heed::scorecard
