// heed bench: times training, decoding and ops, beside the limits of this machine.
#include <array>
#include <set>

#include "heed/core/io/table_text.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/workload.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/session/setting_options.h"

namespace heed {
namespace {

struct Part {
  const char* name;
  void (*run)(const ParsedArguments&);
  size_t max_arguments;              ///< after its name
  std::vector<const char*> options;  ///< that it takes beside --json
  bool settings = false;             ///< takes those of a config too
};

const std::array bench_parts{
    Part{"train", bench::bench_train, 64, {"rounds"}, true},
    Part{"attention",
         bench::bench_attention,
         64,
         {"from", "longest", "head-dim", "seconds", "forward", "out", "precision"}},
    Part{"dropout", bench::bench_dropout, 64, {"from", "longest", "head-dim", "seconds", "rate"}},
    Part{"gemm", bench::bench_gemm, 0, {}},
    Part{"limits", bench::bench_limits, 0, {}},
    Part{"ops", bench::bench_ops, 1, {}},
    Part{"decode", bench::bench_decode, 64, {"out"}, true},
    Part{"step", bench::bench_step, 64, {"from", "longest", "head-dim", "rounds"}}};

/// Fails at options that this part does not use: the command declares those of all its parts.
void refuse_options(const ParsedArguments& arguments, const Part& part) {
  std::set<std::string> taken{"json"};
  std::string words;
  for (const char* option : part.options) {
    taken.insert(option);
    words += text("--", option, ", ");
  }
  if (part.settings) {
    taken.insert({"attention", "cross-attention", "set"});
    for (const Setting& setting : settings()) taken.insert({setting.option, setting.brief, setting.key});
  }
  refuse_others(arguments, text("bench ", part.name), taken,
                text("does not go with it. It takes ", words, "--json, --threads, --device, --memory",
                     part.settings ? " and the settings of a run" : "", "."));
}

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
    refuse_options(arguments, part);
    part.run(arguments);
  }
  return 0;
}

std::string bench_parts_text() {
  std::vector<TableRow> parts{
      {"train [ROW|PRESET|FILE.toml ...]", "steps, each beside its products alone; nothing named: all rows"},
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
      "bench",
      "time training, decoding, matrix products and ops, beside the machine's limits",
      "train|attention|dropout|gemm|limits|ops|decode|step [NAME ...]",
      "what is timed, and of that only what is named",
      1,
      65,
      with_machine_options(
          {{"rounds", "N",
            "steps that train times (default: as many as fit into 4 seconds), tokens of step (default: 50)"},
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
      true,
      run_bench,
      bench_parts_text};
}

}  // namespace heed
