// A log of the kernels that run while it lives: launches, bytes, operations and time of each call.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <typeinfo>
#include <vector>

#include "heed/core/device.h"
#include "heed/core/kernel_arguments.h"
#include "heed/core/scope.h"

namespace heed {

/// One call of launch<K>() that no other kernel made; kernels that it launches itself are part of it.
struct KernelCall {
  std::string kernel;                  ///< name of the struct K without namespaces: "Map<Gelu>"
  int64_t launches = 0;                ///< kernels started on the device, by cuBLAS too; 1 on the CPU
  int64_t bytes = 0;                   ///< KernelArguments::bytes: what it reads and writes at least once
  int64_t flops = 0;                   ///< floating-point operations, as Count has them
  Rounding rounding = Rounding::none;  ///< rounding of the factors of its products
  double seconds = 0;                  ///< wall time; on a GPU with the device idle before and after it
};

/// While it lives, every outermost launch<K>() of any thread is recorded; on a GPU the host waits for each,
/// so a step that is being captured must not be logged. One may live at a time; a second is an internal
/// error. It must not be destroyed while a kernel runs. Launches and operations are differences of counters
/// of the program: where several threads launch kernels at once, a call may count those of its neighbours
/// too, so log one thread for these.
class KernelLog : NonCopyable {
 public:
  KernelLog();
  ~KernelLog();

  static bool wanted();                   ///< whether a log lives
  std::vector<KernelCall> calls() const;  ///< the calls until now, in the order in which they ended

  /// Runs `run`, which computes `kernel`, and records it in the living log, if there is one. A kernel that
  /// fails is not recorded. For launch().
  static void record(Device device, const std::type_info& kernel, const KernelArguments& arguments,
                     const std::function<void()>& run);

 private:
  mutable std::mutex mutex_;
  std::vector<KernelCall> calls_;
};

/// The name of a type without namespaces, as in "Map<Gelu>".
std::string short_type_name(const std::type_info& type);

}  // namespace heed
