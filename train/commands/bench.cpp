// heed bench: times training, decoding and ops, beside the limits of this machine.
#include <algorithm>
#include <array>
#include <set>

#include "heed/core/io/table_text.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/workload.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/session/setting_options.h"

namespace heed {
namespace {

constexpr size_t max_names = 64;

/// A part of heed bench, named by its first argument.
struct Part {
  const char* name;
  void (*run)(const ParsedArguments&);
  size_t max_arguments;              ///< maximum number of arguments behind the part's name
  std::vector<const char*> options;  ///< its options besides --json
  bool settings = false;             ///< whether it takes the settings of a run as options too
};

const std::array bench_parts{
    Part{"train", bench::bench_train, max_names, {"rounds"}, /*settings=*/true},
    Part{"kernels", bench::bench_kernels, 1, {"rounds", "predict-on"}, /*settings=*/true},
    Part{"attention",
         bench::bench_attention,
         max_names,
         {"from", "longest", "head-dim", "seconds", "forward", "out", "precision"}},
    Part{"dropout", bench::bench_dropout, max_names, {"from", "longest", "head-dim", "seconds", "rate"}},
    Part{"gemm", bench::bench_gemm, 0, {}},
    Part{"limits", bench::bench_limits, 0, {}},
    Part{"ops", bench::bench_ops, 1, {}},
    Part{"decode", bench::bench_decode, max_names, {"out"}, /*settings=*/true},
    Part{"step", bench::bench_step, max_names, {"from", "longest", "head-dim", "rounds"}}};

/// The names of all options of a part.
std::set<std::string> options_of_part(const Part& part) {
  std::set<std::string> names{"json"};
  names.insert(part.options.begin(), part.options.end());
  if (part.settings) {
    names.insert({"attention", "cross-attention", "set"});
    for (const Setting& setting : settings()) names.insert({setting.option, setting.brief, setting.key});
  }
  return names;
}

/// Whether the part that the first argument names takes an option.
bool part_takes_option(const std::vector<std::string>& positional, const std::string& option) {
  return std::any_of(bench_parts.begin(), bench_parts.end(), [&](const Part& part) {
    return !positional.empty() && positional[0] == part.name && options_of_part(part).contains(option);
  });
}

/// Runs the part that the first argument names. Fails at options that it does not use: the command declares
/// those of all parts.
int run_bench(const ParsedArguments& arguments) {
  apply_machine(arguments);
  std::vector<std::string> known;
  for (const Part& part : bench_parts) known.emplace_back(part.name);
  known_word("bench:", arguments.positional[0], known);
  for (const Part& part : bench_parts) {
    if (arguments.positional[0] != part.name) continue;
    if (arguments.positional.size() > part.max_arguments + 1) {
      fail("bench ", part.name, ": unexpected argument '", arguments.positional[part.max_arguments + 1],
           "'.");
    }
    std::string listed;
    for (const char* option : part.options) listed += text("--", option, ", ");
    refuse_others(arguments, text("bench ", part.name), options_of_part(part),
                  text("does not go with it. It takes ", listed, "--json, --threads, --device, --memory",
                       part.settings ? " and the settings of a run" : "", "."));
    part.run(arguments);
  }
  return 0;
}

/// The parts and the workloads that train, kernels and decode know, for the command's help.
std::string bench_parts_text() {
  std::vector<TableRow> parts{
      {"train [ROW|PRESET|FILE.toml ...]", "steps, each beside its products alone; nothing named: all rows"},
      {"kernels [ROW|PRESET|FILE.toml]",
       "one step by kernel: launches, bytes, operations, time; nothing named: baby. An emulated device or "
       "--predict-on CARD gives times foreseen for a GPU"},
      {"attention [SPEC ...]", "one attention against length, beside softmax; nothing named: all variants"},
      {"dropout [SPEC ...]",
       "a step with dropout beside one without; nothing named: fastmax's three by length, and all "
       "attentions"},
      {"gemm", "products beside OpenBLAS and the peak of multiply-adds; on a GPU in each precision"},
      {"limits", "rates of memory and of large products, and what asking costs"},
      {"ops [WORD]", "what is no product, against one pass over its memory"},
      {"decode [ROW ...]", "greedy and beam decoding, one and 32 at once"},
      {"step [SPEC ...]", "one token of one attention layer after a history, beside softmax"}};
  std::vector<TableRow> rows;
  for (const bench::Row& row : bench::rows()) rows.push_back({row.name, row.about});
  const TableLayout layout{.columns = unlimited_columns, .indent = 2};
  return aligned_table(parts, layout) + "\nRows:\n" + aligned_table(rows, layout);
}

}  // namespace

Command command::bench() {
  return {
      .name = "bench",
      .about = "time training, decoding, matrix products and ops, beside the machine's limits",
      .positional = "train|kernels|attention|dropout|gemm|limits|ops|decode|step [NAME ...]",
      .positional_help = "what is timed, and of that only what is named",
      .min_positional = 1,
      .max_positional = 1 + max_names,
      .options = with_machine_options(
          {{"rounds", "N",
            "steps that train times (default: as many as fit into 4 seconds), tokens of step (default: 50), "
            "steps of kernels (default: 5)"},
           {"predict-on", "CARD", "kernels: no times of this machine, but foreseen ones of this GPU: h100"},
           {"from", "N",
            "shortest length, which is doubled (default: 256 for attention, 64 for dropout, 4096 for step)"},
           {"longest", "N",
            "greatest length (default: 4096 for attention, 16384 for dropout, --from for step)"},
           {"head-dim", "N", "D of a head (default: 32 for attention, 32 and 64 for dropout, 64 for step)"},
           {"rate", "P", "dropout: the share that is dropped (default: 0.1)"},
           {"seconds", "S",
            "attention: no length whose step is foreseen to take longer (default: 2); dropout: time of a row "
            "(default: 1)"},
           {"forward", "", "attention: times forward passes alone; --seconds is about them, then"},
           {"out", "DIR", "attention: a table and pictures; decode: weights and outputs for other programs"},
           {"json", "", "one JSON object a line"}}),
      .settings = true,
      .run = run_bench,
      .more = bench_parts_text,
      .takes_option = part_takes_option};
}

}  // namespace heed
