// heed bench: how fast this machine trains and decodes, against what it can.
#include <array>
#include <set>

#include "heed/train/bench/bench.h"
#include "heed/train/bench/workload.h"
#include "heed/train/commands/command_declarations.h"

namespace heed {
namespace {

struct Part {
  const char* name;
  void (*run)(const ParsedArguments&);
  size_t most;                       ///< words after its name
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

/// The command takes the options of all its parts; fails at those that this part does not use.
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
  for (const Part& part : bench_parts) {
    known.emplace_back(part.name);
    if (arguments.positional[0] != part.name) continue;
    if (arguments.positional.size() > part.most + 1) {
      fail("bench ", part.name, ": unexpected argument '", arguments.positional[part.most + 1], "'.");
    }
    refuse_options(arguments, part);
    part.run(arguments);
    return 0;
  }
  fail("bench: '", arguments.positional[0], "' is unknown.", suggestion(arguments.positional[0], known));
}

std::string what_there_is() {
  std::string text =
      "  train [ROW|PRESET|FILE.toml ...]  steps, each beside its products alone; nothing named: all rows\n"
      "  attention [SPEC ...]              one attention against length, beside softmax; nothing named: all "
      "variants\n"
      "  dropout [SPEC ...]                a step with dropout beside one without; nothing named: fastmax's "
      "three by length, and all attentions\n"
      "  gemm                              products beside OpenBLAS and the peak of multiply-adds; on a GPU "
      "in each precision\n"
      "  limits                            rates of memory and of large products, and what asking costs\n"
      "  ops [WORD]                        what is no product, against one pass over its memory\n"
      "  decode [ROW ...]                  greedy and beam decoding, one and 32 at once\n"
      "  step [SPEC ...]                   one token of one attention layer after a history, beside "
      "softmax\n\n"
      "Rows:\n";
  for (const bench::Row& row : bench::rows()) {
    std::string name = row.name;
    name.resize(std::max<size_t>(name.size(), 20), ' ');
    text += "  " + name + " " + row.about + "\n";
  }
  return text;
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
      with_machine(
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
      what_there_is};
}

}  // namespace heed
