// Rows P1 and P2: signals other than SIGTERM and SIGINT, and closed standard streams.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

/// Words of a tiny run that tells what it does.
std::vector<std::string> telling(const Scene& scene, const std::string& name,
                                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = tiny_train(scene, name, more);
  std::erase(words, "--quiet");
  return words;
}

/// The program started by a line of the shell, in which "$@" is the program with its words.
Command by_shell(const Scene& scene, const std::string& line, const std::vector<std::string>& words) {
  Command command = scene.heed(words);
  command.words.insert(command.words.begin(), {"sh", "-c", line, "sh"});
  return command;
}

/// Waits for a checkpoint of a run; false where none comes.
bool has_checkpoint(const Path& run) {
  for (const double until = now() + 60; checkpoints_of(run).empty(); sleep_for(0.002)) {
    if (now() > until) return false;
  }
  return true;
}

/// What is wrong with a run that was stopped, and with what it becomes when it goes on.
std::string saved_and_whole(const Scene& scene, const Reference& reference, const std::string& name) {
  const Path run = run_of(scene, name);
  const std::vector<int64_t> saved = checkpoints_of(run);
  if (saved.empty() || saved.back() != logged_step(run))
    return text("the last checkpoint is not that of the last step, ", logged_step(run));
  std::string wrong = finish(scene, name);
  if (wrong.empty() && weights_hash(run) != reference.hash) wrong = "it ends with other weights";
  return wrong;
}

/// A signal that stops a run once it has a checkpoint.
std::string stopped(const Scene& scene, const Reference& reference, int number, int times, double delay) {
  const std::string name = text("signal", number, "-", times);
  io::remove_all(run_of(scene, name));
  Process process(scene.heed(tiny_train(scene, name)));
  if (!has_checkpoint(run_of(scene, name))) return "no checkpoint comes";
  sleep_for(delay);
  for (int i = 0; i < times; ++i) process.signal(number);
  const Ended end = process.wait();
  if (end.ok()) return weights_hash(run_of(scene, name)) == reference.hash ? "" : "other weights";
  // Behind the last step there is nothing to save, and it may end at once.
  const bool trained = !checkpoints_of(run_of(scene, name)).empty() &&
                       checkpoints_of(run_of(scene, name)).back() == tiny_steps;
  if (end.code != 128 + number || (end.signal != 0 && !trained)) return "the code is wrong: " + end.said();
  return saved_and_whole(scene, reference, name);
}

/// A signal that was ignored when the run began.
std::string ignored(const Scene& scene, const Reference& reference, const std::string& signal, int number) {
  const std::string name = "ignored" + signal;
  Process process(by_shell(scene, "trap '' " + signal + "; exec \"$@\"", tiny_train(scene, name)));
  if (!has_checkpoint(run_of(scene, name))) return "no checkpoint comes";
  process.signal(number);
  const Ended end = process.wait();
  if (!end.ok()) return "it obeys: " + end.said();
  return weights_hash(run_of(scene, name)) == reference.hash ? "" : "it ends with other weights";
}

/// SIGUSR1 again and again, from before the first step on, to a run that would save at its end alone.
std::string saves_and_goes_on(const Scene& scene) {
  const std::vector<std::string> seldom{"--steps",          "3000", "--checkpoint-every", "3000",
                                        "--validate-every", "3000"};
  const Ended plain = run(scene.heed(tiny_train(scene, "seldom", seldom)));
  if (!plain.ok()) return plain.said();
  Process process(scene.heed(telling(scene, "asked", seldom)));
  const Path asked = run_of(scene, "asked");
  // The lock is taken before the data are read.
  while (process.running() && !io::exists(asked / "lock")) sleep_for(0.001);
  for (int i = 0; i < 20 && process.running(); ++i, sleep_for(0.01)) process.signal(SIGUSR1);
  bool between = false;
  while (process.running()) {
    for (const int64_t step : checkpoints_of(asked)) between |= step < 3000;
    sleep_for(0.001);
  }
  const Ended end = process.wait();
  if (!end.ok()) return "it ends: " + end.said();
  if (!between && end.err.find("as SIGUSR1 asked; training continues") == std::string::npos)
    return "no checkpoint comes of it";
  return weights_hash(asked) == weights_hash(run_of(scene, "seldom")) ? "" : "it ends with other weights";
}

/// A pipe that has a name: the program writes to it, and whoever reads it leaves when told.
class Reader {
 public:
  explicit Reader(Path named) : path(std::move(named)) {
    io::remove_all(path);
    if (::mkfifo(path.c_str(), 0600) != 0) fail(Fault::file, "no pipe at ", path);
    file_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { leave(); }
  void leave() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }
  const Path path;

 private:
  int file_ = -1;
};

/// Both streams of a run into one pipe, as in `2>&1 | tee log`, whose reader goes with the same Ctrl-C or
/// before; number 0: no signal comes, and the run goes on without a reader.
std::string reader_gone(const Scene& scene, const Reference& reference, int number) {
  const std::string name = text("pipe", number);
  Reader reader(scene.room / (name + ".fifo"));
  Command command = scene.heed(telling(
      scene, name, number != 0 ? std::vector<std::string>{"--steps", "100000"} : std::vector<std::string>{}));
  command.out = command.err = reader.path.string();
  const Path run = run_of(scene, name);
  Process process(command);
  if (number != 0 && !has_checkpoint(run)) return "no checkpoint comes";
  reader.leave();
  if (number != 0) process.signal(number);
  const Ended end = process.wait();
  if (number == 0 && !end.ok()) return "a run without a reader ends: " + end.said();
  if (number == 0) return weights_hash(run) == reference.hash ? "" : "it ends with other weights";
  if (end.code != 128 + number || end.signal != 0) return "the code is wrong: " + end.said();
  const std::vector<int64_t> saved = checkpoints_of(run);
  return !saved.empty() && saved.back() >= logged_step(run) ? "" : "the last step is not saved";
}

/// An answer that nobody waits for ends without words, and soon.
std::string answer_unread(const Scene& scene, const std::vector<std::string>& words,
                          const std::string& input) {
  Reader reader(scene.room / "answer.fifo");
  Command command = scene.heed(words);
  command.out = reader.path.string();
  command.input = input;
  command.seconds = 60;
  Process process(command);
  reader.leave();
  const Ended end = process.wait();
  if (end.code != 128 + SIGPIPE || !end.err.empty()) return "not quietly code 141: " + end.said();
  return "";
}

/// Standard streams that are closed: what is printed goes nowhere, least of all into files of the run.
std::string closed(const Scene& scene, const Reference& reference, const std::string& which) {
  const std::string name = text("closed", which.size());
  const Ended end = run(by_shell(scene, "exec \"$@\" " + which, telling(scene, name)));
  if (!end.ok()) return "a run fails for it: " + end.said();
  const Path folder = run_of(scene, name);
  if (weights_hash(folder) != reference.hash) return "it ends with other weights";
  std::string wrong = complaint_on_logs(folder, tiny_steps);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && io::read(entry.path()).find("\n  step ") != std::string::npos)
      wrong = text("progress stands in ", entry.path().filename().string());
  }
  return wrong;
}

std::string closed_answer(const Scene& scene) {
  const Ended end = run(by_shell(scene, "exec \"$@\" >&-", {"list", "presets"}));
  return end.code == 5 ? "" : "an answer that cannot be written does not show: " + end.said();
}

}  // namespace

Result other_signals(const Scene& scene) {
  const Reference reference = reference_run(scene);
  std::mt19937_64 generator(scene.seed);
  std::uniform_real_distribution<double> moment(0, reference.seconds / 2);
  Tally tally;
  for (const auto& [name, number] : {std::pair{"HUP", SIGHUP}, {"XCPU", SIGXCPU}}) {
    for (int64_t i = 0; i < scene.amount(2, 20); ++i) {
      tally.add(name, stopped(scene, reference, number, 1, moment(generator)));
      // A shell and a terminal both hang up, and the limit of time is told every second.
      tally.add(text(name, " three times"), stopped(scene, reference, number, 3, moment(generator)));
    }
  }
  for (const auto& [name, number] :
       {std::pair{"HUP", SIGHUP}, {"INT", SIGINT}, {"TERM", SIGTERM}, {"XCPU", SIGXCPU}, {"USR1", SIGUSR1}})
    tally.add(text(name, " ignored"), ignored(scene, reference, name, number));
  for (int64_t i = 0; i < scene.amount(1, 10); ++i) {
    for (const char* name : {"seldom", "asked"}) io::remove_all(run_of(scene, name));
    tally.add("USR1", saves_and_goes_on(scene));
  }
  return tally.result(
      " signals: stopped and saved with codes 129 and 152, saved and gone on, or ignored as before");
}

Result pipes(const Scene& scene) {
  const Reference reference = reference_run(scene);
  Tally tally;
  for (int64_t i = 0; i < scene.amount(1, 10); ++i) {
    for (const int number : {0, SIGINT, SIGTERM, SIGHUP}) {
      io::remove_all(run_of(scene, text("pipe", number)));
      tally.add(text("a reader is gone, signal ", number), reader_gone(scene, reference, number));
    }
    for (const char* which : {">&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
      io::remove_all(run_of(scene, text("closed", std::string(which).size())));
      tally.add(text("closed ", which), closed(scene, reference, which));
    }
  }
  tally.add("an answer to a closed stream", closed_answer(scene));
  const std::string name = run_of(scene, "reference").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", "presets"},
        {"--help"},
        {"show", "lm"},
        {"bench", "ops"},
        {"generate", name, "--max-new-tokens", "100000", "--threads", "1"}})
    tally.add(text("nobody reads ", words[0]), answer_unread(scene, words, ""));
  return tally.result(
      " hold: runs without a reader save and go on, answers end quietly, no file takes what is printed");
}

}  // namespace heed::scorecard
