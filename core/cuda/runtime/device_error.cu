// Indices that a kernel could not use, read by the host.
#include "heed/core/cuda/runtime/device_error.h"

#include <cstring>
#include <mutex>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/kernels/content/index_errors.h"
#include "heed/core/tensor.h"

namespace heed::cuda {
namespace {

struct Notes {
  std::mutex mutex;
  DeviceError* device = nullptr;  ///< [refusers]
};

Notes& notes() {
  static Notes all;
  return all;
}

__global__ void forget(DeviceError* all) {
  if (threadIdx.x < refusers) all[threadIdx.x].first = ~0ULL;
}

void clear(DeviceError* all) { run(forget, Grid{.blocks = dim3(1), .threads = dim3(32)}, all); }

[[noreturn]] void tell(Refuser who, const DeviceError& note) {
  const auto place = static_cast<int64_t>(note.first >> 32);
  const auto value = static_cast<int32_t>(static_cast<uint32_t>(note.first));
  const char* const op = who == Refuser::gather        ? "gather"
                         : who == Refuser::scatter_add ? "scatter_add"
                         : who == Refuser::gather_rows ? "take_rows"
                                                       : "put_rows";
  if (who == Refuser::cross_entropy)
    kernel::refuse_target(value, place, note.rows, static_cast<int32_t>(note.spared));
  if (who == Refuser::gather || who == Refuser::scatter_add) kernel::refuse_id(op, value, place, note.rows);
  const int64_t head = place / note.count;
  kernel::refuse_row(op, value, place % note.count, head % note.heads, head / note.heads, note.rows);
}

}  // namespace

DeviceError* refusal(Refuser who) {
  Notes& all = notes();
  const std::lock_guard lock(all.mutex);
  if (all.device == nullptr) {
    refuse_capture("the first op that may refuse an index", "makes room for what it refuses");
    void* memory = nullptr;
    stream();
    check(cudaMalloc(&memory, sizeof(DeviceError) * refusers), "memory for refused indices");
    all.device = static_cast<DeviceError*>(memory);
    clear(all.device);
  }
  return all.device + static_cast<int>(who);
}

bool ask_refusals() {
  refuse_capture("reading refused indices", "makes the host wait for what is only recorded");
  static_assert(sizeof(DeviceError) * refusers <= landing_bytes);
  Notes& all = notes();
  const std::lock_guard lock(all.mutex);
  if (all.device == nullptr) return false;
  check(cudaMemcpyAsync(pinned_readback() + landing_bytes, all.device, sizeof(DeviceError) * refusers,
                        cudaMemcpyDeviceToHost, stream()),
        "copying refused indices");
  return true;
}

void check_refusals() {
  DeviceError found[refusers];
  std::memcpy(found, pinned_readback() + landing_bytes, sizeof found);
  for (const DeviceError& one : found) {
    if (one.first == ~0ULL) continue;
    const std::lock_guard lock(notes().mutex);
    clear(notes().device);
    break;
  }
  for (int who = 0; who < refusers; ++who) {
    if (found[who].first != ~0ULL) tell(static_cast<Refuser>(who), found[who]);
  }
}

}  // namespace heed::cuda
