// Records kernels for the living log, which all copies of the kernels share.
#include "heed/core/kernel_log.h"

#include <cxxabi.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <typeindex>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/error.h"
#include "heed/core/operation_count.h"
#include "heed/core/timeline.h"

namespace heed {
namespace {

std::atomic<KernelLog*> living_log{nullptr};
thread_local bool is_in_kernel = false;  // whether this thread runs a recorded kernel

int64_t launches_on(Device device) {
  if constexpr (built_with_cuda) return device == Device::cpu ? 0 : cuda::launches();
  return 0;
}

/// The name of a kernel, made readable at its first call.
const std::string& kernel_name(const std::type_info& kernel) {
  static auto* mutex = new std::mutex;
  static auto* names = new std::map<std::type_index, std::string>;
  const std::lock_guard lock(*mutex);
  const auto [entry, is_new] = names->try_emplace(kernel);
  if (is_new) entry->second = short_type_name(kernel);
  return entry->second;
}

}  // namespace

int64_t KernelArguments::bytes_in_memory(const Tensor& x) {
  if (!x) return 0;
  int64_t elements = 1;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (x.strides()[axis] != 0 || x.extent(axis) == 0) elements *= x.extent(axis);
  }
  return elements * bytes_of(x.dtype());
}

KernelLog::KernelLog() {
  KernelLog* none = nullptr;
  if (!living_log.compare_exchange_strong(none, this))
    fail(Fault::internal, "kernel log: one lives already. Log one step at a time.");
}

KernelLog::~KernelLog() { living_log.store(nullptr); }

bool KernelLog::wanted() { return living_log.load(std::memory_order_relaxed) != nullptr; }

std::vector<KernelCall> KernelLog::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void KernelLog::record(Device device, const std::type_info& kernel, const KernelArguments& arguments,
                       const std::function<void()>& run) {
  KernelLog* const log = living_log.load();
  if (log == nullptr || is_in_kernel) return run();
  const ScopedValue<bool> inside(is_in_kernel, true);
  synchronize(device);
  const int64_t launches = launches_on(device), flops = Count::flops().load(), began = Timeline::now();
  run();
  synchronize(device);
  const int64_t nanoseconds = Timeline::now() - began;
  KernelCall call{.kernel = kernel_name(kernel),
                  .launches = device == Device::cpu ? 1 : launches_on(device) - launches,
                  .bytes = arguments.bytes,
                  .flops = Count::flops().load() - flops,
                  .rounding = arguments.rounding,
                  .seconds = 1e-9 * static_cast<double>(nanoseconds)};
  const std::lock_guard lock(log->mutex_);
  log->calls_.push_back(std::move(call));
}

std::string short_type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string out, word;
  for (const char* at = demangled ? demangled.get() : type.name(); *at != 0; ++at) {
    if (*at == ':') {
      word.clear();  // it was a namespace
    } else if (*at == '<' || *at == '>' || *at == ',') {
      out += word + *at;
      word.clear();
    } else {
      word += *at;
    }
  }
  return out + word;
}

}  // namespace heed
