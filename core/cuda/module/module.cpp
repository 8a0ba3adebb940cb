// Finds the module of the CUDA kernels, opens it, and leads the program's calls into it.
#include "heed/core/cuda/module/module.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "heed/core/cuda/runtime/context.h"

extern "C" {
// Written by core/cuda/module/links.sh: functions of the module that the program calls, ended by a null, and
// where calls of each lead. Until the module is open that is the function below.
extern const char* const heed_cuda_names[];
extern void* heed_cuda_slots[];

/// What a call of `symbol` ends in while the module is closed. The name is that in links.sh.
[[noreturn]] void heed_cuda_closed(const char* symbol) {
  const std::unique_ptr<char, decltype(&std::free)> words(
      abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr), &std::free);
  heed::fail(heed::Fault::internal, "cuda: ", words != nullptr ? words.get() : symbol,
             " is called while the module of the CUDA kernels is closed.");
}
}

namespace heed::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "heed_cuda.so";
std::atomic<bool> opened{false};

/// The module beside the program, installed with it under any prefix, or where this library was to be
/// installed; empty when there is none.
Path find_file() {
  std::error_code ignored;
  const Path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const Path& folder :
       {program, program / HEED_CUDA_MODULE_FROM_PROGRAM, Path(HEED_CUDA_MODULE_FOLDER)}) {
    if (folder.is_absolute() && fs::is_regular_file(folder / file_name, ignored)) return folder / file_name;
  }
  return {};
}

std::string open_module() {
  const char* named = std::getenv("HEED_CUDA_MODULE_FILE");
  const bool chosen = named != nullptr && *named != '\0';
  // Without a GPU nobody should wait for the module to be read.
  if (!chosen && !emulated && !gpu_seen()) return "there is no GPU of NVIDIA, or its driver is not loaded";
  const Path file = chosen ? Path(named) : find_file();
  std::error_code ignored;
  if (file.empty())
    return text("the CUDA kernels are not installed (", file_name, " of the Debian package heed-cuda)");
  if (!fs::is_regular_file(file, ignored)) return text("HEED_CUDA_MODULE_FILE=", named, " is no file");
  // Its own symbols stay its own. That it needs a symbol of this very build keeps another one from being
  // opened, before any of its code has run.
  void* module = ::dlopen(fs::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) {
    return text(
        file, " cannot be opened (", ::dlerror(),
        "); heed and heed-cuda must be of one version, and a program of one's own linked with -rdynamic");
  }
  for (size_t i = 0; heed_cuda_names[i] != nullptr; ++i) {
    void* function = ::dlsym(module, heed_cuda_names[i]);
    if (function == nullptr) return text(file, " has no ", heed_cuda_names[i]);
    heed_cuda_slots[i] = function;
  }
  opened.store(true, std::memory_order_release);
  return {};
}

}  // namespace

const std::string& why_closed() {
  static const std::string once = open_module();
  return once;
}

bool gpu_seen() {
  std::error_code ignored;  // the last is that of Windows' own Linux
  for (const char* sign : {"/dev/nvidiactl", "/proc/driver/nvidia/gpus", "/usr/lib/wsl/lib/libcuda.so.1"}) {
    if (fs::exists(sign, ignored)) return true;
  }
  return false;
}

bool is_open() { return opened.load(std::memory_order_acquire); }

}  // namespace heed::cuda
