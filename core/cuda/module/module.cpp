// Finds and opens the module of the CUDA kernels, and connects the program's calls to it.
#include "heed/core/cuda/module/module.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "heed/core/cuda/runtime/context.h"

extern "C" {
// Written by core/cuda/module/links.sh: the names of the module's functions that the program calls, ended by
// a null, and their addresses, which are those of stubs that call heed_cuda_closed() until the module is
// open.
extern const char* const heed_cuda_names[];
extern void* heed_cuda_slots[];

/// Fails for a call of `symbol` while the module is closed. links.sh uses this name.
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

/// The path of the module: beside the program, installed with it under any prefix, or in the folder where
/// this library was configured to be installed; empty when there is none.
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
  // Reading the module takes time, which machines without a GPU need not spend.
  if (!chosen && !emulated && !gpu_seen()) return "there is no GPU of NVIDIA, or its driver is not loaded";
  const Path file = chosen ? Path(named) : find_file();
  std::error_code ignored;
  if (file.empty())
    return text("the CUDA kernels are not installed (", file_name, " of the Debian package heed-cuda)");
  if (!fs::is_regular_file(file, ignored)) return text("HEED_CUDA_MODULE_FILE=", named, " is no file");
  // RTLD_LOCAL keeps its symbols to itself. It needs a symbol of the same build, so dlopen refuses the module
  // of another build before any of its code runs.
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
  std::error_code ignored;  // the last path is that of WSL
  for (const char* sign : {"/dev/nvidiactl", "/proc/driver/nvidia/gpus", "/usr/lib/wsl/lib/libcuda.so.1"}) {
    if (fs::exists(sign, ignored)) return true;
  }
  return false;
}

bool is_open() { return opened.load(std::memory_order_acquire); }

}  // namespace heed::cuda
