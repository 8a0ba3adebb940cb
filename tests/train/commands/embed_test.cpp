// heed embed: vectors of lines, and heed import of the BERT that makes them.
#include <cmath>
#include <cstring>

#include "heed/core/io/npy.h"
#include "heed/core/io/number_text.h"
#include "heed/data/text/text.h"
#include "heed/tests/train/bert_folder.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/huggingface_folder.h"

using namespace heed;

namespace {

/// The rows of a CSV.
std::vector<std::vector<float>> rows_of_csv(const std::string& csv) {
  std::vector<std::vector<float>> out;
  for (const std::string_view line : split_lines(csv)) {
    out.emplace_back();
    for (const std::string_view field : split_fields(line, ','))
      out.back().push_back(static_cast<float>(parsed_number(field).value()));
  }
  return out;
}

std::string successful(const Shell& shell, const std::string& line) {
  const Result result = shell.run(command_words(line));
  CAPTURE(line, result.err);
  REQUIRE(result.code == 0);
  return result.out;
}

/// The mean, or the first, of the model's vectors of tokens.
std::vector<float> expected_vector(const MaskedLanguageModel& model, const std::vector<int32_t>& ids,
                                   bool first) {
  const NoGrad no_grad;
  const auto length = static_cast<int64_t>(ids.size());
  const std::vector<float> all = model.hidden(Tensor::of<int32_t>(ids, Shape{1, length}), {}, {}).to_host();
  std::vector<float> out(12);
  const int64_t count = first ? 1 : length;
  for (size_t i = 0; i < static_cast<size_t>(count) * 12; ++i)
    out[i % 12] += all[i] / static_cast<float>(count);
  return out;
}

void check_near(const std::vector<float>& ours, const std::vector<float>& wanted) {
  REQUIRE(ours.size() == wanted.size());
  for (size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == Approx(wanted[i]).margin(1e-5));
}

}  // namespace

TEST_CASE("embed: a line is the mean of its tokens, or the first, cut to what the model reads") {
  const Shell shell;
  const SmallBert made;
  io::make_directories(shell.scratch / "folder");
  made.write(shell.scratch / "folder");
  const std::string said = successful(shell, "import folder --name bert");
  CHECK_THAT(said, containing("a BERT of ") && containing("embed runs/bert --data FILE"));
  CHECK(said.find("are new") == std::string::npos);
  std::string many;
  for (int i = 0; i < 30; ++i) many += " dog";
  io::write(shell.scratch / "lines.txt", "the cats\n\na [MASK] sat.\n" + many + "\n");
  const std::vector<std::vector<int32_t>> tokens{
      {2, 5, 6, 8, 3}, {2, 14, 4, 9, 13, 3}, {2, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 3}};
  const auto means = rows_of_csv(successful(shell, "embed runs/bert --data lines.txt")),
             firsts = rows_of_csv(successful(shell, "embed runs/bert --data lines.txt --pool first"));
  REQUIRE((means.size() == 3 && firsts.size() == 3));
  for (size_t i = 0; i < 3; ++i) {
    check_near(means[i], expected_vector(made.model, tokens[i], false));
    check_near(firsts[i], expected_vector(made.model, tokens[i], true));
  }
  CHECK_THAT(successful(shell, "embed runs/bert --data lines.txt --normalize --out unit.npy"),
             containing("unit.npy: 3 vectors of 12 numbers"));
  successful(shell, "embed runs/bert --data lines.txt --normalize --out unit.csv");
  const Array unit = read_npy(shell.scratch / "unit.npy");
  CHECK(unit.shape == std::vector<int64_t>{3, 12});
  const auto rows = rows_of_csv(io::read(shell.scratch / "unit.csv"));
  double squares = 0;
  for (size_t i = 0; i < 12; ++i) {
    float number = 0;
    std::memcpy(&number, unit.bytes.data() + i * sizeof number, sizeof number);
    CHECK(number == rows.at(0)[i]);  // text that reads back to the same bits
    squares += static_cast<double>(number) * number;
    CHECK(number / rows[0][0] == Approx(means[0][i] / means[0][0]).epsilon(1e-4));
  }
  CHECK(squares == Approx(1).epsilon(1e-5));
  successful(shell, "export runs/bert --as huggingface --out again");
  CHECK(io::read(shell.scratch / "again/model.safetensors") ==
        io::read(shell.scratch / "folder/model.safetensors"));
  CHECK(io::read(shell.scratch / "again/tokenizer.json") ==
        io::read(shell.scratch / "folder/tokenizer.json"));
  check_refused(shell, {"embed", "runs/bert"}, 2, {"Add --data FILE"});
  check_refused(shell, {"embed", "runs/bert", "--data", "lines.txt", "--out", "x.txt"}, 2,
                {"must end with .csv or .npy"});
  check_refused(shell, {"embed", "runs/bert", "--data", "lines.txt", "--pool", "max"}, 2, {"--pool"});
  successful(shell,
             "train lm --steps 1 --d-model 16 --heads 2 --layers 1 --num-examples 4000 --name own --quiet");
  check_refused(shell, {"embed", "runs/own", "--data", "lines.txt"}, 2,
                {"is a run of the task lm, not of a masked"});
}
