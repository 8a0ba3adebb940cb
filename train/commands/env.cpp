// heed env: shows this machine and this build, to be pasted into an issue.
#include <utf8proc.h>

#include "heed/core/device.h"
#include "heed/core/distributed/mpi.h"
#include "heed/core/gpu_info.h"
#include "heed/core/io/files.h"
#include "heed/core/io/table_text.h"
#include "heed/core/isa.h"
#include "heed/core/parallel/blas.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/startup_cpu_check.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

int run_env(const ParsedArguments& arguments) {
  Json metadata = manifest_basics(arguments.argv);
  metadata.set("blas_core", blas_core());
  metadata.set("blas_build", blas::build());
  metadata.set("threads", threads());
  metadata.set("cuda", why_no_cuda().empty() ? gpu_words() : "no: " + why_no_cuda());
  metadata.set("mpi", mpi_words());
  metadata.set("utf8proc", text(utf8proc_version(), ", Unicode ", utf8proc_unicode_version()));
  metadata.set("isa", isa_name());
  std::string instructions;
  for (const char* const* name = needed_instructions; *name != nullptr; ++name)
    instructions += text(instructions.empty() ? "" : " ", *name);
  metadata.set("needs", instructions.empty() ? "no special instructions" : instructions);
  metadata.set("bf16_products", has_bf16_products());
  if (arguments.has("json")) {
    io::print_data(metadata.dump() + "\n");
    return 0;
  }
  std::vector<TableRow> rows;
  for (const auto& [name, value] : metadata.members())
    rows.push_back({name, value.is_text() ? value.text() : value.dump()});
  io::print(aligned_table(rows, {.indent = 2}));
  return 0;
}

}  // namespace

Command command::env() {
  return {.name = "env",
          .about = "show this machine and this build",
          .options = {{"json", "", "one JSON object"}},
          .run = run_env,
          .several_processes = true};
}

}  // namespace heed
