// The manual page heed(1).
#include "heed/core/version.h"
#include "heed/train/commands/command.h"
#include "heed/train/pages/pages.h"

namespace heed {
namespace {

/// Plain text as roff prints it: hyphens that can be typed, no line that is taken for a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

/// A term in bold, and below it what it is.
std::string entry(const std::string& term, const std::string& help) {
  return text(".TP\n\\fB", roff(term), "\\fR\n", roff(help), "\n");
}

std::string section(const Command& command) {
  const std::string words = command.positional;
  std::string out =
      text(".SS \"", roff(command.name), "\"\n\\fBheed ", roff(command.name), "\\fR ", roff(words),
           words.empty() ? "" : " ", "[OPTIONS]\n.PP\n", roff(command.about), "\n");
  if (command.more != nullptr) out += text(".PP\n.nf\n", roff(command.more()), ".fi\n");
  if (!words.empty()) out += entry(words, command.positional_help);
  for (const CommandOption& option : command.options) {
    const std::string value = option.value;
    out += entry(text("--", option.name, value.empty() ? "" : " ", value), option.help);
  }
  if (command.settings) {
    out += entry("--SETTING VALUE", "Every setting is an option too: heed list settings.");
    for (const CommandOption& option : options_beside_settings(command))
      out += entry(text("--", option.name, " ", option.value), option.help);
  }
  return out;
}

}  // namespace

std::string man_page() {
  std::string out = text(".TH HEED 1 \"\" \"heed ", HEED_VERSION, "\" \"User Commands\"\n.SH NAME\n",
                         roff("heed - trains transformers with any kind of attention"),
                         "\n.SH SYNOPSIS\n\\fBheed\\fR COMMAND [ARGUMENTS] [OPTIONS]\n.SH DESCRIPTION\n");
  out += roff(
      "heed trains language models, translators and classifiers from presets or .toml files, resumes and "
      "compares "
      "runs, and shows what their attentions attend to. Every command explains itself: heed COMMAND --help.");
  out += "\n.SH COMMANDS\n";
  for (const Command& command : commands()) out += section(command);
  out += ".SH EXIT STATUS\n";
  const std::pair<const char*, const char*> codes[] = {
      {"0", "success"},
      {"1", "an internal error"},
      {"2", "a wrong argument, option or configuration"},
      {"3", "a file whose content is not what it should be"},
      {"4", "a value that is not finite, or training that diverges"},
      {"5", "a file system operation failed"},
      {"6", "another process holds the run folder"},
      {"7", "out of memory"},
      {"8", "the device is missing or failed"}};
  for (const auto& [code, meaning] : codes) out += entry(code, meaning);
  return out;
}

}  // namespace heed
