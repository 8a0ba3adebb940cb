// heed inspect RUN RUN2 ... [TEXT]: the maps of several runs for one input.
#include "heed/attention/inspect/head_matching.h"
#include "heed/attention/inspect/side_by_side_page.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/commands/inspect_modes.h"
#include "heed/train/session/side_by_side_runs.h"

namespace heed {
namespace {

std::string head_name(const MapView& map, int64_t head) { return text(map.kind, " ", map.layer, ".", head); }

/// The pairs of the first two runs, one a line.
std::string pairs_text(const SideBySide& all) {
  std::string out;
  const auto& [first_name, first] = all.models.front();
  for (size_t i = 1; i < all.models.size(); ++i) {
    const auto& [name, maps] = all.models[i];
    out += text("  ", first_name, "  ~  ", name, "   distance in nats, 0 to 0.69\n");
    for (const HeadMatch& match : match_heads(first, maps)) {
      const std::string one = head_name(first[match.one.map], match.one.head);
      out += "    " + one + std::string(one.size() < 22 ? 22 - one.size() : 1, ' ');
      if (match.distance < 0) {
        out += "without a counterpart\n";
        continue;
      }
      const std::string other = head_name(maps[match.other.map], match.other.head);
      out += other + std::string(other.size() < 22 ? 22 - other.size() : 1, ' ') +
             picture::fixed(match.distance, 3) + "\n";
    }
  }
  return out;
}

}  // namespace

int inspect_side_by_side(const ParsedArguments& arguments) {
  for (const char* option : {"kind", "layer", "head"}) {
    if (arguments.has(option))
      fail("inspect: --", option, " is for one run; the page of several has all heads. Leave it out.");
  }
  apply_machine(arguments);
  const size_t count = count_runs(arguments);
  std::vector<Path> runs(arguments.positional.begin(),
                         arguments.positional.begin() + static_cast<int64_t>(count));
  const SideBySide all = side_by_side(runs, inspected_text(arguments), arguments.get("checkpoint"));
  const Path page = inspect_folder(arguments, runs[0]) / "side-by-side.html";
  io::write_own(page, side_by_side_page(all));
  io::print(text(all.caption, "\n\n", pairs_text(all), "\npage  ", page.string(), "\n"));
  return 0;
}

}  // namespace heed
