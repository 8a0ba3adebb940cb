// The library in a program that has chosen a locale with decimal commas: its files and words are the same.
#include "heed/tests/comma_locale.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

struct LocaleShell : Shell {
  explicit LocaleShell(const std::string& locale) {
    before = {"env", "LC_ALL=" + locale};
    started = {locale_program()};
  }

  /// Standard output of a command that must work.
  std::string words(const std::vector<std::string>& command) const {
    const Result result = run(command);
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    return result.out;
  }
};

const std::vector<std::string> reproduce_one{"reproduce",        "fast-table1",
                                             "--rows",           "Vanilla/ListOps",
                                             "--num-examples",   "300",
                                             "--validation",     "20",
                                             "--test-size",      "52",
                                             "--max-length",     "48",
                                             "--data.below",     "48",
                                             "--data.shortest",  "8",
                                             "--depth",          "3",
                                             "--arguments",      "6",
                                             "--operators",      "0.5",
                                             "--batch-size",     "4",
                                             "--threads",        "1",
                                             "--steps",          "4",
                                             "--validate-every", "2"};

/// A curve without what the clock says: the column of seconds, and facts of time and machine.
std::string timeless(const std::string& csv) {
  std::string out;
  for (size_t at = 0; at < csv.size();) {
    const size_t end = std::min(csv.find('\n', at), csv.size());
    std::string line = csv.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(','), second = line.find(',', first + 1);
    if (line.starts_with("# date: ")) continue;
    if (line.starts_with("# tested: ")) line.resize(line.find("steps_per_second="));
    if (!line.starts_with('#') && second != line.npos) line.erase(first, second - first);
    out += line + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("locale: a program with decimal commas writes and reads the files of the C locale", "[slow]") {
  const CommaLocale locale;
  if (!locale.made()) return;
  const LocaleShell plain("C"), comma(CommaLocale::name);
  const std::vector<std::string> recall{
      "train", "recall",       "--steps", "4",           "--name", "r",       "--lr",
      "0.002", "--layers",     "1",       "--threads",   "1",      "--quiet", "--validate-every",
      "2",     "--validation", "20",      "--test-size", "20"};
  const auto same = [&](const std::vector<std::string>& command) {
    CAPTURE(command.at(0), command.at(1));
    CHECK(plain.words(command) == comma.words(command));
  };
  same(recall);
  same({"evaluate", "runs/r", "--json", "--threads", "1"});
  same({"list", "attention"});
  same({"show", "runs/r"});
  for (const LocaleShell* shell : {&plain, &comma}) {  // these tell how long they took
    shell->words({"heads", "runs/r", "--out", "heads", "--examples", "4", "--threads", "1"});
    shell->words({"inspect", "runs/r", "--out", "maps", "--threads", "1"});
  }
  for (const char* file : {"runs/r/config.toml", "runs/r/scores.json", "heads/head-distances.svg",
                           "maps/maps.html", "maps/all-heads.svg"}) {
    CAPTURE(file);
    CHECK((io::read(plain.scratch / file) == io::read(comma.scratch / file)));
  }
  CHECK_THAT(io::read(comma.scratch / "runs/r/config.toml"), containing("\nlearning_rate = 0.002 "));
}

TEST_CASE("locale: a curve written with decimal commas chosen is read by every program, with its verdict",
          "[slow]") {
  const CommaLocale locale;
  if (!locale.made()) return;
  const LocaleShell plain("C"), comma(CommaLocale::name);
  const std::string verdict = plain.words(reproduce_one);
  CHECK(comma.words(reproduce_one) == verdict);
  const std::string folder = "runs/reproduce-fast-table1/results/";
  const std::string curve = folder + "fast-table1-Vanilla-ListOps-s1.csv";
  const std::string written = io::read(comma.scratch / curve);
  CHECK(timeless(written) == timeless(io::read(plain.scratch / curve)));
  // The curve alone, without its run, as that of another seed: by the ordinary program, and by one with
  // commas.
  std::string second = written;
  const size_t seed = second.find("# seed: 1\n");
  REQUIRE(seed != std::string::npos);
  second.replace(seed, 9, "# seed: 2");
  for (const std::string& reader : {program(), locale_program()}) {
    CAPTURE(reader);
    LocaleShell other(CommaLocale::name);
    other.started = {reader};
    io::make_directories(other.scratch / "filed");
    io::write(other.scratch / "filed/fast-table1-Vanilla-ListOps-s2.csv", second);
    const std::string both = other.words(with(reproduce_one, {"--results", "filed"}));
    CHECK(io::read(other.scratch / "filed/fast-table1-Vanilla-ListOps-s2.csv") == second);
    CHECK_THAT(unwrapped(both), containing("2 seeds, deviation 0.00"));
  }
}
