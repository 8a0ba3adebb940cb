// The manual page and the words for bash.
#include "heed/train/pages/pages.h"

#include <set>
#include <sstream>
#include <string>

#include "heed/core/version.h"
#include "heed/tests/catch.h"
#include "heed/train/commands/command.h"

using namespace heed;

TEST_CASE("manual page: holds every command and option, and no line that roff would take for a request") {
  const std::string page = man_page(commands());
  REQUIRE(page.starts_with(".TH HEED 1 \"\" \"heed " HEED_VERSION "\""));
  for (const Command& command : commands()) {
    CHECK(page.find("\\fBheed " + std::string(command.name)) != std::string::npos);
    for (const CommandOption& option : command.options) {
      std::string name = option.name;
      for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) name.replace(at, 1, "\\-");
      INFO(command.name << " --" << option.name);
      CHECK(page.find("\\fB\\-\\-" + name) != std::string::npos);
    }
  }
  const std::set<std::string> known{".TH", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi"};
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    if (line.starts_with('.')) CHECK(known.contains(line.substr(0, 3)));
    CHECK_FALSE(line.starts_with('\''));
  }
}

TEST_CASE("completion: offers every command with its options") {
  const std::string words = bash_completion(commands());
  for (const Command& command : commands()) {
    const std::string line = "    " + std::string(command.name) + ") options='";
    const size_t at = words.find(line);
    INFO(command.name);
    REQUIRE(at != std::string::npos);
    const std::string options = words.substr(at, words.find('\n', at) - at);
    for (const CommandOption& option : command.options)
      CHECK(options.find("--" + std::string(option.name)) != std::string::npos);
    CHECK((options.find("--learning-rate") != std::string::npos) == command.settings);
  }
}
