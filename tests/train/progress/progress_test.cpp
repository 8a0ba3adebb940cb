// Progress output: the step of each validation, and each step once.
#include "heed/train/progress/progress.h"

#include <cmath>
#include <csignal>
#include <limits>

#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

/// What is said to people who have no terminal; step 0: a run ended.
std::string said(const std::vector<Progress::Now>& all) {
  const Scratch scratch;
  const int before = ::dup(STDERR_FILENO);
  const int file = ::open((scratch / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  REQUIRE(::dup2(file, STDERR_FILENO) >= 0);
  Progress progress;
  for (const Progress::Now& one : all) {
    if (one.step == 0)
      progress.finish();
    else
      progress.step(one);
  }
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(file);
  return io::read(scratch / "err");
}

std::vector<std::string> lines_of(const std::string& words) {
  std::vector<std::string> out;
  for (size_t at = 0; at < words.size(); at = words.find('\n', at) + 1)
    out.push_back(words.substr(at, words.find('\n', at) - at));
  return out;
}

}  // namespace

TEST_CASE("progress: a validation is told with its step, and with the accuracy of a classifier") {
  Progress::Now now{.step = 10, .total = 20};
  now.take_score(10, "accuracy", 0.75);
  now.take_score(10, "loss", 3.064);
  Progress::Now later = now;
  later.step = 12;
  const std::vector<std::string> lines = lines_of(said({now, later}));
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], containing("step 10/20") && containing("valid 3.064  accuracy 0.750  "));
  CHECK_THAT(lines[1], containing("step 12/20") && containing("valid 3.064  accuracy 0.750 @10  "));
}

TEST_CASE("progress: a step is told once, tenths that were jumped over too, and the next run begins anew") {
  const auto at = [](int64_t step) { return Progress::Now{.step = step, .total = 1000}; };
  const std::vector<std::string> lines =
      lines_of(said({at(10), at(20), at(110), at(110), at(190), at(1000), at(1000), at(0), at(1000)}));
  REQUIRE(lines.size() == 4);
  for (const auto& [line, part] : {std::pair{0, "  10/1000"}, std::pair{1, " 110/1000"},
                                   std::pair{2, "1000/1000"}, std::pair{3, "1000/1000"}})
    CHECK_THAT(lines[static_cast<size_t>(line)], containing(part));
}

TEST_CASE("progress: on a terminal the line is shorter than the terminal, and what says least goes first") {
  const Progress::Now now{.step = 49998,
                          .total = 100000,
                          .loss = 3.14159,
                          .norm = 1.25,
                          .validated = 49000,
                          .validation = 3.064,
                          .estimate = 3.071,
                          .accuracy = 0.875,
                          .bleu = 31.4,
                          .tokens_per_second = 123456,
                          .seconds_left = 45296};
  const std::string whole = progress_line(now, true, 200);
  for (const char* part : {"step  49998/100000", "[########..........]", " 49%", "train 3.142", "valid 3.064",
                           "(estimate 3.071)", "accuracy 0.875", "bleu 31.4", "@49000", "123.5k tok/s",
                           "grad 1.25", "eta 12:34:56"})
    CHECK_THAT(whole, containing(part));
  for (int64_t columns = 1; columns <= 200; ++columns) {
    CAPTURE(columns);
    CHECK(progress_line(now, true, columns).size() <= static_cast<size_t>(columns - 1));
  }
  CHECK(progress_line(now, true, 80) ==
        "  step  49998/100000  train 3.142  valid 3.064  bleu 31.4  eta 12:34:56");
  CHECK(progress_line(now, true, 40) == "  step  49998/100000  train 3.142");
}

TEST_CASE("progress: what cannot be written makes it quiet, and nothing else") {
  const int before = ::dup(STDERR_FILENO);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto handled = std::signal(SIGPIPE, SIG_IGN);  // as the program does
  REQUIRE(::dup2(ends[1], STDERR_FILENO) >= 0);
  ::close(ends[1]);
  Progress progress;
  progress.say("device", "cpu");
  const bool spoke = !progress.quiet;
  ::close(ends[0]);
  progress.step({.step = 1, .total = 20});
  const bool stopped = progress.quiet;
  progress.step({.step = 20, .total = 20});
  progress.say("done", "all");
  progress.finish();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::signal(SIGPIPE, handled);
  CHECK(spoke);
  CHECK(stopped);
}

TEST_CASE("progress: any number of seconds is a time, and any count short") {
  CHECK(clock_text(0) == "0:00");
  CHECK(clock_text(59.6) == "1:00");
  CHECK(clock_text(3661) == "1:01:01");
  CHECK(clock_text(-5) == "0:00");
  for (const double endless : {1e300, std::numeric_limits<double>::infinity(), std::nan("")})
    CHECK(clock_text(endless) == "277777777:46:40");
  CHECK(short_number(999) == "999");
  CHECK(short_number(1234) == "1.2k");
  CHECK(short_number(7'654'321) == "7.65M");
}

TEST_CASE("progress: what is not known of a step is left out of its line") {
  const Progress::Now now{.step = 3, .total = 100, .loss = 1.5, .seconds_left = 9};
  CHECK(progress_line(now, false, 200) == "  step   3/100   3%  train 1.500  eta 0:09");
}

TEST_CASE(
    "progress: work beside the steps has a share of 0 to 100 percent, and a time that is not negative") {
  const auto line = [](double share, double left, int64_t columns = 80) {
    return work_line({.label = "test", .share = share, .seconds_left = left}, true, columns);
  };
  CHECK(line(0.5, 65) == "  test        [#########.........]  50%  eta 1:05");
  CHECK(line(0, 0) == "  test        [..................]   0%");
  CHECK(line(1.5, 0) == "  test        [##################] 100%  eta 0:00");
  CHECK(line(0.5, -1) == "  test        [#########.........]  50%");
  CHECK(line(-1, 0) == "  test        ...");
  CHECK(work_line({.label = "test", .share = 0.25, .seconds_left = 3}, false, 80) ==
        "  test         25%  eta 0:03");
  for (int64_t columns = 1; columns < 60; ++columns)
    CHECK(line(0.5, 65, columns).size() <= static_cast<size_t>(columns - 1));
}
