// heed env: what this machine and this build are, to be pasted into an issue.
#include <cstdio>
#include <cstdlib>

#include "core/device.h"
#include "core/parallel.h"
#include "train/commands/verbs.h"
#include "train/run_folder.h"

namespace heed {
namespace {

int run(const Invocation& call) {
  Json facts = manifest_basics(call.arguments);
  facts.set("blas_core", blas_core());
  facts.set("threads", threads());
  facts.set("cuda", why_no_cuda().empty() ? std::string("yes") : "no: " + why_no_cuda());
#ifdef __AVX512F__
  facts.set("built_for", "AVX-512");
#elif defined(__AVX2__)
  facts.set("built_for", "AVX2");
#else
  facts.set("built_for", "baseline");
#endif
  if (call.has("json")) {
    std::puts(facts.dump().c_str());
    return 0;
  }
  for (const auto& [name, value] : facts.members()) {
    std::printf("  %-20s %s\n", name.c_str(), value.is_text() ? value.text().c_str() : value.dump().c_str());
  }
#ifndef __AVX512F__  // with it, products in f32 are our own and do not mind
  const char* core = std::getenv("OPENBLAS_CORETYPE");
  if (core != nullptr && std::string(core) == "Haswell" && __builtin_cpu_supports("avx512f")) {
    std::puts(
        "\nnote: OPENBLAS_CORETYPE=Haswell is set although this CPU has AVX-512; unsetting it may be about "
        "twice as fast.");
  }
#endif
  return 0;
}

}  // namespace

Verb verb::env() {
  return {"env", "say what this machine and this build are", "",    0,
          0,     {{"json", "", "one JSON object"}},          false, run};
}

}  // namespace heed
