// heed bench: how fast this machine trains, against what it can.
#include <array>

#include "train/bench/bench.h"
#include "train/bench/workload.h"
#include "train/commands/verbs.h"

namespace heed {
namespace {

struct Part {
  const char* name;
  void (*run)(const Invocation&);
};

constexpr std::array parts{Part{"train", bench::bench_train}, Part{"attention", bench::bench_attention},
                           Part{"gemm", bench::bench_gemm}};

int run(const Invocation& call) {
  apply_machine(call);
  std::vector<std::string> known;
  for (const Part& part : parts) {
    known.emplace_back(part.name);
    if (call.words[0] != part.name) continue;
    part.run(call);
    return 0;
  }
  fail("bench: '", call.words[0], "' is unknown.", suggestion(call.words[0], known));
}

}  // namespace

Verb verb::bench() {
  return {"bench",
          "time training steps, attention, products and ops against what the machine can do",
          "train|attention|gemm [NAME ...]",
          1,
          64,
          with_machine({{"rounds", "N", "steps that train times (default: as many as fit into 6 seconds)"},
                        {"longest", "N", "greatest length of attention (default: 2048)"},
                        {"json", "", "one JSON object a line"}}),
          true,
          run};
}

}  // namespace heed
