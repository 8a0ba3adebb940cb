// The stack of modules that compute: ops and memory belong to the innermost, and a Timeline gets a slice for
// each.
#include <cstdint>
#include <vector>

#include "heed/autograd/tape.h"
#include "heed/core/memory/storage.h"
#include "heed/core/timeline.h"

namespace heed {
namespace {

struct RunningModule {
  const void* module;
  int64_t start;  // time by Timeline::now(); 0 without a Timeline
};
thread_local std::vector<RunningModule> modules;

}  // namespace

ModuleScope::ModuleScope(const void* module) {
  Timeline* timeline = Timeline::active();
  modules.push_back({module, timeline != nullptr ? Timeline::now() : 0});
  if (timeline != nullptr) timeline->mark();
  memory_owner = module;
}
ModuleScope::~ModuleScope() {
  const RunningModule ended = modules.back();
  modules.pop_back();
  memory_owner = innermost();
  if (Timeline* timeline = Timeline::active(); timeline != nullptr && ended.start > 0) {
    timeline->slice("module", nullptr, ended.module, ended.start);
    timeline->mark();
    timeline->counter("tensors", memory_use().live);
  }
}
const void* ModuleScope::innermost() { return modules.empty() ? nullptr : modules.back().module; }

}  // namespace heed
