// What the program prints fits the terminal: help of every command, every list, and tables of a run.
#include <algorithm>
#include <sstream>

#include "heed/core/io/files.h"
#include "heed/core/io/terminal.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/shell.h"
#include "heed/train/commands/command.h"

using namespace heed;

namespace {

constexpr int64_t widths[] = {60, 80, 120};

Shell shell_of_columns(int64_t columns) {
  return Shell{.scratch = Scratch(), .before = {"env", text("COLUMNS=", columns)}};
}

/// The lines that are wider than the terminal, but for those of one word, such as a path, behind a label or
/// not.
std::string wide_lines(const std::string& output, int64_t columns) {
  std::istringstream lines(output);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = std::min(line.find_first_not_of(' '), line.size());
    const size_t word = std::min(line.find_first_not_of(' ', line.find("  ", first)), line.size());
    const bool is_one_word = line.find(' ', first) == std::string::npos ||
                             (word < line.size() && word <= 40 && line.find(' ', word) == std::string::npos);
    if (display_width(line) > columns && !is_one_word) out += line + "\n";
  }
  return out;
}

void check_fits(const Shell& shell, int64_t columns, const std::vector<std::string>& words, int code = 0) {
  std::string line;
  for (const std::string& word : words) line += word + " ";
  CAPTURE(line, columns);
  const Result result = shell.run(words);
  CHECK(result.code == code);
  CHECK_FALSE((result.out + result.err).empty());
  CHECK(wide_lines(result.out, columns).empty());
  CHECK(wide_lines(result.err, columns).empty());
}

}  // namespace

TEST_CASE("terminal width: the help of every command, every list and errors fit", "[slow]") {
  for (const int64_t columns : widths) {
    const Shell shell = shell_of_columns(columns);
    check_fits(shell, columns, {"--help"});
    for (const Command& command : commands()) check_fits(shell, columns, {command.name, "--help"});
    for (const char* what :
         {"attention", "layers", "commands", "settings", "presets", "tasks", "runs", "data"})
      check_fits(shell, columns, {"list", what});
    for (const char* name : {"softmax", "fastmax", "longformer"})
      check_fits(shell, columns, {"list", "attention", name});
    check_fits(shell, columns, {"env"});
    check_fits(shell, columns, {"reproduce"});
    check_fits(shell, columns, {"show", "lm", "--origin"});
    check_fits(shell, columns, {"list", "nothing"}, 2);
    check_fits(shell, columns, {"train", "lm", "--position", "nothing"}, 2);
    check_fits(shell, columns, {"data", "get"}, 2);
    check_fits(shell, columns,
               {"bench", "step", "softmax", "--from", "16", "--rounds", "2", "--threads", "1"});
  }
  const std::string list = shell_of_columns(80).run({"list", "attention"}).out;
  CHECK_THAT(list, containing("name ") && containing(" time ") && containing(" memory ") &&
                       containing(" can ") && containing(" paper\n"));
  CHECK_THAT(shell_of_columns(80).run({"list", "attention", "--wide"}).out, containing("  parameters"));
}

TEST_CASE("terminal width: progress and the tables of runs fit", "[slow]") {
  for (const int64_t columns : widths) {
    const Shell shell = shell_of_columns(columns);
    const auto train = [&](const std::string& name, const std::string& attention) {
      check_fits(shell, columns,
                 {"train",
                  "translate",
                  "--name",
                  name,
                  "--d-model",
                  "16",
                  "--heads",
                  "2",
                  "--d-ff",
                  "16",
                  "--max-length",
                  "16",
                  "--num-examples",
                  "200",
                  "--data.validation",
                  "10",
                  "--data.test_size",
                  "6",
                  "--bleu-pairs",
                  "2",
                  "--steps",
                  "4",
                  "--batch-tokens",
                  "200",
                  "--validate-every",
                  "2",
                  "--threads",
                  "2",
                  "--attention",
                  attention});
    };
    train("a", "softmax");
    train("a-run-with-quite-a-long-name-for-a-terminal-of-sixty-columns", "linear");
    check_fits(shell, columns, {"list", "runs"});
    check_fits(shell, columns, {"evaluate", "runs/a", "--by-length"});
    check_fits(shell, columns, {"heads", "runs/a", "--examples", "4"});
    check_fits(shell, columns, {"ablate", "runs/a", "--examples", "4", "--outputs", "2"});
    check_fits(shell, columns, {"inspect", "runs/a", "--terminal"});
    check_fits(shell, columns, {"structure", "runs/a", "--kind", "encoder"});
    check_fits(shell, columns,
               {"compare", "runs/a", "runs/a-run-with-quite-a-long-name-for-a-terminal-of-sixty-columns"});
  }
}
