// Opens NCCL and sums tensors over processes by it.
#include "heed/core/cuda/runtime/nccl.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/cuda/runtime/stream.h"

namespace heed::cuda {
namespace {

/// Types of NCCL in the layout of its releases since 2.4, so that its header is not needed.
struct NcclId {
  char bytes[128];
};
using NcclComm = void*;

/// The functions of NCCL that Heed calls.
struct NcclTable {
  int (*get_id)(NcclId*);
  int (*join)(NcclComm*, int, NcclId, int);
  int (*leave)(NcclComm);
  int (*all_reduce)(const void*, void*, size_t, int, int, NcclComm, cudaStream_t);
  const char* (*error_text)(int);
};

constexpr int nccl_f32 = 7, nccl_f64 = 8, nccl_sum = 0;  // ncclFloat32, ncclFloat64, ncclSum

/// Opens NCCL; null, with the reason in `why`, where that fails.
const NcclTable* load_nccl(std::string& why) {
  static NcclTable table{};
  if constexpr (emulated) {
    why = "NCCL knows no emulated device";
    return nullptr;
  }
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = text("NCCL cannot be opened (", dlerror(), ")");
    return nullptr;
  }
  const auto find = [&](const char* name, auto& function) {
    void* found = dlsym(library, name);
    if (found == nullptr && why.empty()) why = text("this NCCL has no ", name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find("ncclGetUniqueId", table.get_id);
  find("ncclCommInitRank", table.join);
  find("ncclCommDestroy", table.leave);
  find("ncclAllReduce", table.all_reduce);
  find("ncclGetErrorString", table.error_text);
  return why.empty() ? &table : nullptr;
}

/// AllReduce on a stream beside that of the computation.
class NcclAllReduce final : public AllReduce {
 public:
  NcclAllReduce(const NcclTable& table, NcclComm comm) : nccl_(table), comm_(comm) {
    stream();  // opens the device
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    cuda::check(cudaEventCreateWithFlags(&computed_, cudaEventDisableTiming), "making an event");
    cuda::check(cudaEventCreateWithFlags(&summed_, cudaEventDisableTiming), "making an event");
  }
  ~NcclAllReduce() override {
    // A destructor ignores failures.
    cudaStreamSynchronize(stream_);
    nccl_.leave(comm_);
    cudaEventDestroy(computed_);
    cudaEventDestroy(summed_);
    cudaStreamDestroy(stream_);
  }

  void start(const Tensor& x) override {
    cuda::check(cudaEventRecord(computed_, stream()), "marking what is computed");
    cuda::check(cudaStreamWaitEvent(stream_, computed_, 0), "waiting for what is computed");
    const int type = x.dtype() == DType::f64 ? nccl_f64 : nccl_f32;
    const int status =
        nccl_.all_reduce(x.raw(), x.raw(), static_cast<size_t>(x.size()), type, nccl_sum, comm_, stream_);
    if (status != 0)
      fail(Fault::device, "cuda: summing over processes: NCCL: ", nccl_.error_text(status), ".");
    count_launches(1);
  }

  void finish() override {
    cuda::check(cudaEventRecord(summed_, stream_), "marking what is summed");
    cuda::check(cudaStreamWaitEvent(stream(), summed_, 0), "waiting for sums");
  }

 private:
  const NcclTable& nccl_;
  NcclComm comm_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t computed_ = nullptr;  // behind the computation of the tensor to be summed
  cudaEvent_t summed_ = nullptr;    // behind all sums
};

/// Host and bus address of this process's GPU, which are equal for processes that share it.
std::string gpu_address() {
  char host[256] = {}, bus[32] = {};
  gethostname(host, sizeof host - 1);
  int device = 0;
  check(cudaGetDevice(&device), "asking which device it is");
  check(cudaDeviceGetPCIBusId(bus, sizeof bus, device), "asking where the device is");
  return text(host, " ", bus);
}

}  // namespace

std::string why_gpus_are_shared(std::vector<std::string> gpus) {
  std::sort(gpus.begin(), gpus.end());
  const auto shared = std::adjacent_find(gpus.begin(), gpus.end());
  if (shared == gpus.end()) return "";
  return text("processes share the GPU ", *shared, ", which NCCL refuses");
}

std::unique_ptr<AllReduce> nccl_all_reduce(ProcessGroup& group, std::string& why) {
  // Registering buffers is collective and would happen during capture, which a member may have to abandon.
  ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
  const NcclTable* table = load_nccl(why);
  // join() waits for all members, so either all call it or none does.
  for (const std::string& reason : group.all_gather(why)) {
    if (why.empty()) why = reason;
  }
  if (!why.empty() || table == nullptr) return nullptr;
  std::string address;
  group.together([&] {
    stream();  // opens the device
    address = gpu_address();
  });
  why = why_gpus_are_shared(group.all_gather(address));
  if (!why.empty()) return nullptr;
  NcclId id{};
  if (group.is_main() && table->get_id(&id) != 0) why = "NCCL finds no way between the processes";
  group.together([&] {
    if (!why.empty()) fail(Fault::device, "cuda: ", why, ".");
  });
  group.broadcast(id.bytes, sizeof id.bytes);
  NcclComm comm = nullptr;
  group.together([&] {
    const int status = table->join(&comm, static_cast<int>(group.size()), id, static_cast<int>(group.rank()));
    if (status != 0) {
      fail(Fault::device, "cuda: joining the other processes: NCCL: ", table->error_text(status),
           ". Give each process a GPU of its own; NCCL_DEBUG=INFO says more.");
    }
  });
  return std::make_unique<NcclAllReduce>(*table, comm);
}

}  // namespace heed::cuda
