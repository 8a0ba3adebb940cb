// The manual page heed(1).
#include "heed/core/io/table_text.h"
#include "heed/core/version.h"
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
  constexpr int64_t max_columns = 72;  // width of lines that are not filled, without their margin
  const std::string words = command.positional;
  std::string out =
      text(".SS \"", roff(command.name), "\"\n\\fBheed ", roff(command.name), "\\fR ", roff(words),
           words.empty() ? "" : " ", "[OPTIONS]\n.PP\n", roff(command.about), "\n");
  if (command.more != nullptr)
    out += text(".PP\n.nf\n", roff(folded_lines(command.more(), max_columns)), ".fi\n");
  if (!words.empty()) out += entry(words, command.positional_help);
  for (const CommandOption& option : documented_options(command))
    out += entry(text("--", option.name, *option.value == '\0' ? "" : " ", option.value), option.help);
  if (command.settings)
    out += entry("--SETTING VALUE", "Every setting is an option too: heed list settings.");
  return out;
}

}  // namespace

std::string man_page(std::span<const Command> commands) {
  std::string out = text(".TH HEED 1 \"\" \"heed ", HEED_VERSION, "\" \"User Commands\"\n.SH NAME\n",
                         roff("heed - trains transformers with any kind of attention"),
                         "\n.SH SYNOPSIS\n\\fBheed\\fR COMMAND [ARGUMENTS] [OPTIONS]\n.SH DESCRIPTION\n");
  out += roff(
      "heed trains language models, translators and classifiers from presets or .toml files, resumes and "
      "compares runs, and shows what their attentions attend to. Every command explains itself: heed COMMAND "
      "--help.");
  out += "\n.SH COMMANDS\n";
  for (const Command& command : commands) out += section(command);
  out += ".SH EXIT STATUS\n";
  for (const ExitCode& one : exit_codes) out += entry(one.code, one.meaning);
  return out;
}

}  // namespace heed
