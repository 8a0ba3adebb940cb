// The page docs/reference/settings.md: every setting with its options.
#include "heed/core/io/table_text.h"
#include "heed/data/text/text.h"
#include "heed/train/pages/pages.h"
#include "heed/train/session/setting_options.h"

namespace heed {

std::string settings_markdown() {
  std::string out =
      "# Settings\n\nMade by `heed list settings --markdown`; a test keeps it up to date.\n\n" +
      folded(
          "A setting is a line of a TOML file, under the table of its group; an option of `train`, "
          "`compare`, "
          "`show` and `export`; and `--set GROUP.NAME=VALUE`, which wins over the option. Its value, where "
          "neither a preset nor you give one, stands in brackets. `heed show PRESET --origin` tells where "
          "each value comes from.",
          page_columns);
  std::string group;
  for (const Setting& setting : settings()) {
    const std::string own = setting.key.substr(0, setting.key.find('.'));
    if (own != group) out += text("\n## [", group = own, "]\n\n");
    const std::string brief = setting.brief.empty() ? "" : text(", --", setting.brief);
    std::string help;
    for (const std::string_view line : split_lines(setting.help))
      help += text(help.empty() ? "" : "; ", line);
    out +=
        folded(text("- `", setting.key.substr(own.size() + 1), "` (`--", setting.option, brief, "`): ", help),
               page_columns, "  ");
  }
  return out;
}

}  // namespace heed
