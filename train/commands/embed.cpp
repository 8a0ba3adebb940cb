// heed embed: turns each line of a text file into a vector by a masked language model.
#include <algorithm>
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/core/io/npy.h"
#include "heed/core/io/number_text.h"
#include "heed/data/tokenizers/streamed_text.h"
#include "heed/nn/masked_language_model.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/run_inputs.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/language/masked_tokens.h"

namespace heed {
namespace {

constexpr int64_t lines_at_once = 32;
constexpr double min_norm = 1e-12;  // a shorter vector is divided by this, as by PyTorch's normalize

/// How the vectors of a line's tokens become one.
struct Pooling {
  bool takes_first = false;      ///< that of the first token, else the mean of all
  bool has_unit_length = false;  ///< the result is divided by its length
};

/// The vectors of lines of tokens: [lines, width].
std::vector<float> vectors_of(const MaskedLanguageModel& model,
                              const std::vector<std::vector<int32_t>>& lines, const Pooling& pooling) {
  const NoGrad no_grad;
  const auto count = static_cast<int64_t>(lines.size());
  size_t columns = 0;
  std::vector<int32_t> lengths, ids;
  for (const auto& line : lines) columns = std::max(columns, line.size());
  for (const auto& line : lines) {
    lengths.push_back(static_cast<int32_t>(line.size()));
    ids.insert(ids.end(), line.begin(), line.end());
    ids.resize(lengths.size() * columns);
  }
  const Tensor hidden = model.hidden(Tensor::of<int32_t>(ids, Shape{count, static_cast<int64_t>(columns)}),
                                     Tensor::of<int32_t>(lengths, Shape{count}), {});
  const std::vector<float> all = hidden.to_host();
  const auto width = static_cast<size_t>(hidden.extent(2));
  std::vector<float> out;
  for (size_t line = 0; line < lines.size(); ++line) {
    const size_t tokens = pooling.takes_first ? 1 : lines[line].size();
    std::vector<double> sum(width);
    double squares = 0;
    for (size_t i = 0; i < tokens * width; ++i)
      sum[i % width] += static_cast<double>(all[line * columns * width + i]) / static_cast<double>(tokens);
    for (const double x : sum) squares += x * x;
    const double divisor = pooling.has_unit_length ? std::max(std::sqrt(squares), min_norm) : 1;
    for (const double x : sum) out.push_back(static_cast<float>(x / divisor));
  }
  return out;
}

/// The tokens of each line, cut to what the model reads.
std::vector<std::vector<int32_t>> tokens_of(const MappedLines& lines, const Tokenizer& tokenizer,
                                            int64_t max_length) {
  std::vector<std::vector<int32_t>> out;
  for (size_t i = 0; i < lines.texts.size(); ++i) {
    out.push_back(between_ends(tokenizer, encode_lines(tokenizer, lines.texts[i]), max_length));
    if (out.back().empty())
      fail(Fault::data, lines.places[i], ": the line has no token, so it has no vector. Leave it out.");
  }
  return out;
}

/// A vector a line, with commas between its numbers, each of which reads back to the same bits.
std::string csv_of(const std::vector<float>& vectors, size_t width) {
  std::string out;
  for (size_t i = 0; i < vectors.size(); ++i) out += text(vectors[i]) + ((i + 1) % width == 0 ? "\n" : ",");
  return out;
}

int run_embed(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const Pooling pooling{.takes_first = arguments.word("pool", {"mean", "first"}, "mean") == "first",
                        .has_unit_length = arguments.has("normalize")};
  const std::string out = arguments.get("out");
  const bool is_npy = out.ends_with(".npy");
  if (!out.empty() && !is_npy && !out.ends_with(".csv"))
    fail("--out ", shown(out),
         ": the name must end with .csv or .npy. Without --out the vectors are printed.");
  if (!arguments.has("data")) fail("embed: where are the texts? Add --data FILE, with one text a line.");
  const LoadedRun run = load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint")});
  const auto* model = dynamic_cast<MaskedLanguageModel*>(run.model.get());
  if (model == nullptr)
    fail("embed: ", arguments.positional[0], " is a run of the task ", run.config.task_name,
         ", not of a masked language model (mlm), such as an imported BERT.");
  const auto tokenizer = artifact_tokenizer(tokenizer_files(run.checkpoint), "text");
  if (!tokenizer) fail(Fault::data, "embed: the checkpoint holds no tokenizer.");
  const std::vector<std::vector<int32_t>> lines = tokens_of(
      lines_of_file(find_data(arguments.get("data")), "--data", 0), *tokenizer, run.config.model.max_length);
  std::vector<float> vectors;
  for (size_t first = 0; first < lines.size(); first += lines_at_once) {
    const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(first);
    const std::vector<float> some = vectors_of(
        *model, {begin, begin + std::min<std::ptrdiff_t>(lines_at_once, lines.end() - begin)}, pooling);
    vectors.insert(vectors.end(), some.begin(), some.end());
  }
  const int64_t width = run.config.model.d_model;
  if (is_npy)
    io::write(out, encode_npy("f32", {static_cast<int64_t>(lines.size()), width},
                              std::as_bytes(std::span(vectors))));
  else if (out.empty())
    io::print_data(csv_of(vectors, static_cast<size_t>(width)));
  else
    io::write(out, csv_of(vectors, static_cast<size_t>(width)));
  if (!out.empty())
    io::printf("%s: %zu vectors of %lld numbers\n", out.c_str(), lines.size(), static_cast<long long>(width));
  return 0;
}

}  // namespace

Command command::embed() {
  return {
      .name = "embed",
      .about = "turn each line of a text file into a vector, by a masked language model",
      .positional = "RUN",
      .positional_help = "the folder of a run of the task mlm, such as an imported BERT",
      .min_positional = 1,
      .max_positional = 1,
      .options = with_machine_options(
          {{"data", "FILE", "a text a line, gzip or not; blank lines are left out; required"},
           {"pool", "WORD",
            "mean: of the last block's outputs of all tokens, [CLS] and [SEP] included; first: that of the "
            "first token alone (default: mean)"},
           {"normalize", "", "divide each vector by its length"},
           {"out", "FILE", "a .csv, with a vector a line, or a .npy [lines, width] (default: print as CSV)"},
           checkpoint_option}),
      .run = run_embed};
}

}  // namespace heed
