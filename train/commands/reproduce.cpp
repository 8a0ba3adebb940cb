// heed reproduce: published tables, run again.
#include <algorithm>
#include <cstdio>

#include "heed/core/io/files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/experiments/reproduction.h"

namespace heed {
namespace {

std::string tables() {
  std::string out = "Tables:\n";
  for (const PublishedTable& table : published())
    out += "  " + table.name + std::string(20 - table.name.size(), ' ') + table.about + "\n";
  return out;
}

ReproductionOptions options_of_call(const ParsedArguments& arguments, const PublishedTable& table) {
  ReproductionOptions out;
  if (arguments.has("rows")) {
    for (const std::string& list : arguments.options.at("rows")) {
      for (size_t at = 0; at <= list.size();) {
        const size_t end = std::min(list.find(',', at), list.size());
        out.rows.push_back(list.substr(at, end - at));
        at = end + 1;
      }
    }
  }
  out.seeds = arguments.integer("seeds", 1);
  if (out.seeds < 1 || out.seeds > 100) fail("--seeds = ", out.seeds, ". It must be 1 to 100.");
  out.limit = arguments.number("limit", 600);
  if (!(out.limit >= 0)) fail("--limit = ", out.limit, ". It must be 0 or more seconds.");
  if (arguments.has("data")) {
    for (const std::string& one : arguments.options.at("data")) {
      const size_t equals = one.find('=');
      if (equals == std::string::npos || equals == 0)
        fail("--data ", one, ": write --data COLUMN=PATH, as in --data ", table.columns.front().name,
             "=FOLDER.");
      out.data[one.substr(0, equals)] = one.substr(equals + 1);
    }
  }
  out.place.folder = Path(arguments.get("out", "runs")) / ("reproduce-" + table.name);
  for (const CommandOption& option : with_machine({})) {
    if (arguments.has(option.name))
      out.place.machine.insert(out.place.machine.end(),
                               {text("--", option.name), arguments.get(option.name)});
  }
  out.place.quiet = arguments.has("quiet");
  return out;
}

int run_reproduce(const ParsedArguments& arguments) {
  if (arguments.positional.empty()) {
    io::print(tables());
    return 0;
  }
  const PublishedTable& table = published_table(arguments.positional[0]);
  const ReproductionOptions options = options_of_call(arguments, table);
  apply_machine(arguments);
  try {
    const std::vector<Cell> cells = reproduce(table, options);
    io::make_directories(options.place.folder);
    io::write(options.place.folder / "reproduce.csv", reproduction_csv(cells));
    io::print(reproduction_text(table, cells));
    const auto failed =
        std::find_if(cells.begin(), cells.end(), [](const Cell& cell) { return cell.code != 0; });
    return failed == cells.end() ? 0 : failed->code;
  } catch (const Stopped& stopped) {
    io::print_error("  stopped, and saved; the same command goes on\n");
    return 128 + stopped.signal;
  }
}

}  // namespace

Command command::reproduce() {
  return {"reproduce",
          "reproduce a published table and compare with the paper; without a name: list the tables",
          "TABLE",
          "a published table; left out: which there are",
          0,
          1,
          with_machine({{"rows", "A,B", "these ROWs, COLUMNs or ROW/COLUMNs, however long they take"},
                        {"seeds", "N", "runs of each (default: 1)"},
                        {"limit", "SECONDS",
                         "skips cells predicted to take longer unless named in --rows (default: 600)"},
                        {"data", "COLUMN=PATH", "the data of a column; may be repeated"},
                        {"out", "FOLDER", "where its folder lies (default: runs)"},
                        {"quiet", "", "print nothing while working"}}),
          false,
          run_reproduce,
          tables};
}

}  // namespace heed
