// heed env: what this machine and this build are, to be pasted into an issue.
#include <cstdio>

#include "core/blas.h"
#include "core/device.h"
#include "core/gpu.h"
#include "core/io.h"
#include "core/isa.h"
#include "core/mpi.h"
#include "core/parallel.h"
#include "train/commands/verbs.h"
#include "train/run_folder.h"

namespace heed {
namespace {

int run(const Invocation& call) {
  Json facts = manifest_basics(call.arguments);
  facts.set("blas_core", blas_core());
  facts.set("blas_build", blas::build());
  facts.set("threads", threads());
  facts.set("cuda", why_no_cuda().empty() ? gpu_words() : "no: " + why_no_cuda());
  facts.set("mpi", mpi_words());
  facts.set("isa", to_string(isa()));
  facts.set("bf16_products", has_bf16_products());
  if (call.has("json")) {
    io::print_data(facts.dump() + "\n");
    return 0;
  }
  for (const auto& [name, value] : facts.members()) {
    io::printf("  %-20s %s\n", name.c_str(), value.is_text() ? value.text().c_str() : value.dump().c_str());
  }
  return 0;
}

}  // namespace

Verb verb::env() {
  return {"env", "say what this machine and this build are", "",    "", 0,
          0,     {{"json", "", "one JSON object"}},          false, run};
}

}  // namespace heed
