// Keeps the records of invalid indices on the device, and throws the first of them on the host.
#include "heed/core/cuda/runtime/index_error_record.h"

#include <cstring>
#include <mutex>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/kernels/content/index_errors.h"
#include "heed/core/tensor.h"

namespace heed::cuda {
namespace {

/// The records of all ops, allocated when a kernel first checks indices.
struct Records {
  std::mutex mutex;
  IndexErrorRecord* device = nullptr;  ///< [num_index_ops]
};

Records& records() {
  static Records all;
  return all;
}

constexpr unsigned long long no_error = ~0ULL;

__global__ void clear_records(IndexErrorRecord* all) {
  if (threadIdx.x < num_index_ops) all[threadIdx.x].first = no_error;
}

void clear(IndexErrorRecord* all) { run(clear_records, Grid{.blocks = dim3(1), .threads = dim3(32)}, all); }

/// Throws the error that the op's CPU kernel throws for the recorded index.
[[noreturn]] void throw_error(IndexOp op, const IndexErrorRecord& error) {
  const auto place = static_cast<int64_t>(error.first >> 32);
  const auto value = static_cast<int32_t>(static_cast<uint32_t>(error.first));
  const char* const name = op == IndexOp::gather        ? "embedding"
                           : op == IndexOp::scatter_add ? "scatter_add"
                           : op == IndexOp::gather_rows ? "gather_rows"
                                                        : "scatter_add_rows";
  if (op == IndexOp::cross_entropy)
    kernel::refuse_target(value, place, error.rows, static_cast<int32_t>(error.ignored));
  if (op == IndexOp::gather || op == IndexOp::scatter_add) kernel::refuse_id(name, value, place, error.rows);
  const int64_t head = place / error.count;
  kernel::refuse_row(name, value, place % error.count, head % error.heads, head / error.heads, error.rows);
}

}  // namespace

IndexErrorRecord* index_error_record(IndexOp op) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  if (all.device == nullptr) {
    refuse_capture("the first op that checks indices", "allocates memory for its errors");
    void* memory = nullptr;
    stream();
    check(cudaMalloc(&memory, sizeof(IndexErrorRecord) * num_index_ops), "memory for invalid indices");
    all.device = static_cast<IndexErrorRecord*>(memory);
    clear(all.device);
  }
  return all.device + static_cast<int>(op);
}

bool request_index_errors() {
  refuse_capture("reading invalid indices", "makes the host wait for what is only recorded");
  static_assert(sizeof(IndexErrorRecord) * num_index_ops <= readback_bytes);
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  if (all.device == nullptr) return false;
  check(cudaMemcpyAsync(pinned_readback() + readback_bytes, all.device,
                        sizeof(IndexErrorRecord) * num_index_ops, cudaMemcpyDeviceToHost, stream()),
        "copying invalid indices");
  return true;
}

void check_index_errors() {
  IndexErrorRecord found[num_index_ops];
  std::memcpy(found, pinned_readback() + readback_bytes, sizeof found);
  for (const IndexErrorRecord& record : found) {
    if (record.first == no_error) continue;
    const std::lock_guard lock(records().mutex);
    clear(records().device);
    break;
  }
  for (int op = 0; op < num_index_ops; ++op) {
    if (found[op].first != no_error) throw_error(static_cast<IndexOp>(op), found[op]);
  }
}

}  // namespace heed::cuda
