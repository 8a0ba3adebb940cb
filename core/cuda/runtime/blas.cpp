// Opens cuBLAS and calls its matrix products.
#include "heed/core/cuda/runtime/blas.h"

#include <dlfcn.h>

#include <climits>
#include <memory>
#include <string>

#include "heed/core/memory/storage.h"

namespace heed::cuda {
namespace {

#if defined(HEED_CUDA_EMULATED) && HEED_CUDA_EMULATED

BlasTable open_table() {
  return {cublasCreate_v2,     cublasSetStream_v2, cublasSetWorkspace_v2,      cublasSetMathMode,
          cublasGetVersion_v2, cublasGemmEx,       cublasGemmStridedBatchedEx, cublasGemmBatchedEx};
}

#else

/// Sets `function` to the function of that name. Fault::device where the library lacks it.
template <class F>
void find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  if (function == nullptr)
    fail(Fault::device, "cuda: this cuBLAS has no ", name, ". Install the one of CUDA 12 or 13.");
}

BlasTable open_table() {
  std::string why;
  void* library = open_library("libcublas.so", why);
  if (library == nullptr) {
    fail(Fault::device, "cuda: products need cuBLAS, which cannot be opened (", why,
         "). Install CUDA's libcublas, or name its folder in LD_LIBRARY_PATH.");
  }
  BlasTable table{};
  find(library, "cublasCreate_v2", table.create);
  find(library, "cublasSetStream_v2", table.set_stream);
  find(library, "cublasSetWorkspace_v2", table.set_workspace);
  find(library, "cublasSetMathMode", table.set_math_mode);
  find(library, "cublasGetVersion_v2", table.version);
  find(library, "cublasGemmEx", table.gemm_one);
  find(library, "cublasGemmStridedBatchedEx", table.gemm);
  find(library, "cublasGemmBatchedEx", table.gemm_listed);
  return table;
}

#endif

/// A thread's cuBLAS handle, the stream it is set to, and its workspace.
struct Handle {
  cublasHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  std::unique_ptr<Storage> workspace;
};
thread_local Handle* thread_handle = nullptr;  // never destroyed: the device may be gone before the thread is

/// Arguments that all forms of cuBLAS's products share; checks that extents fit its 32-bit integers.
struct GemmArguments {
  explicit GemmArguments(const BlasProduct& p)
      : transpose_a(p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N),
        transpose_b(p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N),
        is_f64(p.factors == CUDA_R_64F),
        compute(is_f64                                                      ? CUBLAS_COMPUTE_64F
                : p.exactness == Exactness::tf32 && p.factors == CUDA_R_32F ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                            : CUBLAS_COMPUTE_32F),
        alpha_beta_f64{p.alpha, p.beta},
        alpha_beta_f32{static_cast<float>(p.alpha), static_cast<float>(p.beta)} {
    for (const int64_t extent : {p.m, p.n, p.k, p.batch, p.a.ld, p.b.ld, p.ldc}) {
      if (extent > INT_MAX)
        fail("gemm: an extent or a row of ", extent, " elements is more than cuBLAS takes (", INT_MAX, ").");
    }
  }
  // cuBLAS reads alpha and beta in the type of the sums.
  const void* alpha() const { return is_f64 ? static_cast<const void*>(alpha_beta_f64) : alpha_beta_f32; }
  const void* beta() const {
    return is_f64 ? static_cast<const void*>(alpha_beta_f64 + 1) : alpha_beta_f32 + 1;
  }

  cublasOperation_t transpose_a, transpose_b;
  bool is_f64;
  cublasComputeType_t compute;
  double alpha_beta_f64[2];
  float alpha_beta_f32[2];
};

/// An extent that GemmArguments has checked.
int narrow(int64_t extent) { return static_cast<int>(extent); }

}  // namespace

#if !defined(HEED_CUDA_EMULATED) || !HEED_CUDA_EMULATED
void* open_library(const std::string& name, std::string& why) {
  // The paths of the loader, then the folder of the toolkit that Heed was built shared.
  for (const std::string folder : {"", HEED_CUDA_LIBRARIES "/"}) {
    for (const char* version : {".13", ".12"}) {
      if (void* library = dlopen((folder + name + version).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
      if (why.empty()) why = dlerror();
    }
  }
  return nullptr;
}
#endif

const BlasTable& blas_table() {
  static const BlasTable table = open_table();
  return table;
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(Fault::device, "cuda: ", what, ": cuBLAS answers with status ", static_cast<int>(status), ".");
}

cublasHandle_t blas_handle() {
  const cudaStream_t current = stream();
  if (thread_handle == nullptr) {
    auto new_handle = std::make_unique<Handle>();
    check(blas_table().create(&new_handle->handle), "opening cuBLAS");
    // Else kernels that split a long k add partial sums in the type of the result, bf16.
    check(blas_table().set_math_mode(new_handle->handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
          "choosing how products are summed");
    new_handle->workspace = std::make_unique<Storage>(workspace_bytes, Device::cuda);
    thread_handle = new_handle.release();
  }
  if (thread_handle->stream != current) {
    check(blas_table().set_stream(thread_handle->handle, current), "choosing a stream");
    // Setting a stream resets the workspace.
    check(
        blas_table().set_workspace(thread_handle->handle, thread_handle->workspace->data(), workspace_bytes),
        "setting a workspace");
    thread_handle->stream = current;
  }
  return thread_handle->handle;
}

void* blas_workspace() {
  blas_handle();
  return thread_handle->workspace->data();
}

void multiply(const BlasProduct& p) {
  const GemmArguments shared(p);
  const cublasHandle_t handle = blas_handle();
  count_launches(1);
  if (p.batch == 1) {
    return check(blas_table().gemm_one(handle, shared.transpose_a, shared.transpose_b, narrow(p.m),
                                       narrow(p.n), narrow(p.k), shared.alpha(), p.a.data, p.factors,
                                       narrow(p.a.ld), p.b.data, p.factors, narrow(p.b.ld), shared.beta(),
                                       p.c, p.result, narrow(p.ldc), shared.compute, CUBLAS_GEMM_DEFAULT),
                 "a product of matrices");
  }
  check(blas_table().gemm(handle, shared.transpose_a, shared.transpose_b, narrow(p.m), narrow(p.n),
                          narrow(p.k), shared.alpha(), p.a.data, p.factors, narrow(p.a.ld), p.a.batch_stride,
                          p.b.data, p.factors, narrow(p.b.ld), p.b.batch_stride, shared.beta(), p.c, p.result,
                          narrow(p.ldc), p.c_batch_stride, narrow(p.batch), shared.compute,
                          CUBLAS_GEMM_DEFAULT),
        "products of matrices");
}

void multiply_listed(const BlasProduct& p) {
  const GemmArguments shared(p);
  check(blas_table().gemm_listed(blas_handle(), shared.transpose_a, shared.transpose_b, narrow(p.m),
                                 narrow(p.n), narrow(p.k), shared.alpha(),
                                 static_cast<const void* const*>(p.a.data), p.factors, narrow(p.a.ld),
                                 static_cast<const void* const*>(p.b.data), p.factors, narrow(p.b.ld),
                                 shared.beta(), static_cast<void* const*>(p.c), p.result, narrow(p.ldc),
                                 narrow(p.batch), shared.compute, CUBLAS_GEMM_DEFAULT),
        "a list of products of matrices");
  count_launches(1);
}

}  // namespace heed::cuda
