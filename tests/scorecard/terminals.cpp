// Row T1: how untrusted names and texts appear in terminals, and the length of the progress line.
#include "heed/core/io/files.h"
#include "heed/core/io/terminal.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

/// A title for the window and a bell, a C1 sequence, an override of direction.
const std::string payload = "\033]0;owned\a\u009b2J\u202e";

/// The program on a terminal of so many columns, its output caught. The words reach the shell in a file,
/// since `script` takes one line only.
Ended on_terminal(const Scene& scene, const std::vector<std::string>& words, int columns = 80) {
  Command command = scene.heed(words);
  std::string line;
  for (const std::string& word : command.words) line += "'" + word + "' ";
  io::write(scene.room / "line.sh", text("stty cols ", columns, "; exec ", line, "\n"));
  command.words = {"script", "-qec", "sh line.sh", "/dev/null"};
  command.environment.insert(command.environment.end(),
                             {{"TERM", "xterm"}, {"COLUMNS", ""}, {"SHELL", "/bin/sh"}});
  return run(command);
}

/// What is left of an output when a terminal has obeyed what the program itself says: rewritten lines,
/// colours and line ends.
std::string without_own(const std::string& out) {
  std::string left;
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find_first_not_of("0123456789;", at + 2);
    if (out.compare(at, 2, "\033[") == 0 && end != std::string::npos &&
        (out[end] == 'K' || out[end] == 'm')) {
      at = end + 1;
    } else {
      if (out[at] != '\r') left += out[at];
      ++at;
    }
  }
  return left;
}

/// What is wrong with an output for people: it must hold the payload, and in letters.
std::string complaint(const Ended& ended, const std::string& out) {
  const std::string left = without_own(out);
  if (terminal_text(left) != left) return "it would be obeyed: " + terminal_text(left).substr(0, 200);
  return left.find("\\u001b]0;owned\\u0007\\u009b2J\\u202e") == std::string::npos
             ? "the name is not told: " + ended.said()
             : "";
}

/// What is wrong with living lines on a terminal of so many columns.
std::string too_long(const Scene& scene, int columns) {
  const std::string name = text("wide", columns);
  std::vector<std::string> words = tiny_train(scene, name, {"--steps", "40"});
  std::erase(words, "--quiet");
  const Ended ended = on_terminal(scene, words, columns);
  if (!ended.ok()) return ended.said();
  size_t lines = 0;
  const std::string mark = "\033[K";
  for (size_t end = ended.out.find(mark); end != std::string::npos; end = ended.out.find(mark, end + 1)) {
    const size_t begin = ended.out.rfind('\r', end) + 1;
    if (end - begin >= static_cast<size_t>(columns)) return text("a line of ", end - begin, " columns");
    ++lines;
  }
  return lines > 0 ? "" : "no living line";
}

}  // namespace

Result terminals(const Scene& scene) {
  if (!have("script") || !have("stty")) return skip("script and stty (util-linux, coreutils) are not there");
  Tally tally;
  // Words of a TSV, which a run shows as samples.
  std::string pairs;
  for (int i = 0; i < 60; ++i)
    pairs += text("w", i % 10, " ", payload, " ", i % 7, "\tv", i % 10, " v", i % 5, "\n");
  io::write(scene.room / "pairs.tsv", pairs);
  const Ended trained = on_terminal(
      scene, {"train",     "translate", "--data",  "pairs.tsv", "--validation", "5",  "--test-size",  "5",
              "--d-model", "16",        "--heads", "2",         "--d-ff",       "16", "--vocabulary", "60",
              "--steps",   "4",         "--name",  "pairs"});
  tally.add("words of a TSV", complaint(trained, trained.out));
  // Names of folders and files, in answers and errors, on terminals and in logs.
  run(scene.heed(tiny_train(scene, "named", {"--steps", "20"})));
  const std::string name = "runs/x" + payload;
  std::filesystem::rename(run_of(scene, "named"), scene.room / name);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"list", "runs"},
                                                {"evaluate", name},
                                                {"inspect", name},
                                                {"compare", name, "--name", "c"},
                                                {"export", name, "--out", "out" + payload},
                                                {"resume", name, "--steps", "25"},
                                                {"show", "nothing" + payload},
                                                {"data", "check", "nothing" + payload},
                                                {"train", "lm", "--data", "nothing" + payload},
                                                {"train", "lm", "--" + payload}}) {
    const Ended seen = on_terminal(scene, words);
    tally.add(words[0], complaint(seen, seen.out));
    if (words[0] == "resume" || words[0] == "compare" || words[0] == "export") continue;  // done by now
    const Ended logged = run(scene.heed(words));
    tally.add(words[0] + " in a log", complaint(logged, logged.out + logged.err));
  }
  // Data are data on a pipe, and visible on a terminal.
  io::write(scene.room / "escapes.txt", [] {
    std::string out;
    for (int i = 0; i < 300; ++i) out += text("line ", i % 7, " ", payload, "\n");
    return out;
  }());
  run(scene.heed(tiny_train(scene, "escapes", {"--data", "escapes.txt", "--steps", "20"})));
  const std::vector<std::string> generate{"generate", "runs/escapes",     "--prompt",
                                          payload,    "--max-new-tokens", "30"};
  const Ended piped = run(scene.heed(generate)), seen = on_terminal(scene, generate);
  tally.add("generate on a pipe", piped.out.starts_with(payload) ? "" : "not the bytes: " + piped.said());
  tally.add("generate on a terminal", complaint(seen, seen.out));
  for (const int columns : {40, 80, 200})
    tally.add(text("a living line on ", columns, " columns"), too_long(scene, columns));
  return tally.result(
      " hold: what comes from elsewhere is shown and not obeyed, data on a pipe are exact, living "
      "lines fit");
}

}  // namespace heed::scorecard
