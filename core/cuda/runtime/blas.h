// cuBLAS, opened at the first product: a table of its functions, and products by it.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <string>

#include "heed/core/cuda/runtime/stream.h"

namespace heed::cuda {

/// The functions of cuBLAS that Heed calls, found by name; on an emulated device our own, on OpenBLAS.
struct BlasTable {
  using Gemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                              const void*, const void*, cudaDataType_t, int, long long, const void*,
                              cudaDataType_t, int, long long, const void*, void*, cudaDataType_t, int,
                              long long, int, cublasComputeType_t, cublasGemmAlgo_t);
  using ListedGemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                    const void*, const void* const*, cudaDataType_t, int, const void* const*,
                                    cudaDataType_t, int, const void*, void* const*, cudaDataType_t, int, int,
                                    cublasComputeType_t, cublasGemmAlgo_t);
  using OneGemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                 const void*, const void*, cudaDataType_t, int, const void*, cudaDataType_t,
                                 int, const void*, void*, cudaDataType_t, int, cublasComputeType_t,
                                 cublasGemmAlgo_t);
  cublasStatus_t (*create)(cublasHandle_t*);
  cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t);
  cublasStatus_t (*set_workspace)(cublasHandle_t, void*, size_t);
  cublasStatus_t (*version)(cublasHandle_t, int*);
  OneGemm* gemm_one;        // one matrix: the only form with split-k kernels
  Gemm* gemm;               // matrices at equal distances
  ListedGemm* gemm_listed;  // matrices at any addresses
};

/// The table, made when first called. Fault::device naming what is missing where that fails.
const BlasTable& blas_table();
/// Opens a library of CUDA 13 or 12, such as "libcublas.so"; null, with the reason in `why`, where there is
/// none.
void* open_library(const std::string& name, std::string& why);
/// The handle of this thread, with its products on stream().
cublasHandle_t blas_handle();
/// Size of cuBLAS's workspace, as NVIDIA recommends for Hopper. Ours, since cuBLAS's own cannot be captured.
inline constexpr int64_t workspace_bytes = int64_t{32} << 20;
/// The workspace of this thread's handle.
void* blas_workspace();
/// Throws Fault::device unless `status` is success; `what` says what was tried.
void check(cublasStatus_t status, const char* what);

/// The precision of the factors in a product of f32.
enum class Exactness : uint8_t { f32, tf32 };

/// A matrix stored by columns, `step` apart.
struct Columns {
  const void* at;
  int64_t step;
  bool transposed;
  int64_t between;  ///< elements from one matrix of the batch to the next
};

/// c = alpha a b + beta c, all by columns: c m x n. `factors` is the type of a and b, `result` that of c;
/// sums are f32, or f64 for f64.
struct BlasProduct {
  int64_t m, n, k, batch;
  Columns a, b;
  void* c;
  int64_t c_step, c_between;
  double alpha, beta;
  cudaDataType_t factors, result;
  Exactness exactness = Exactness::f32;
};
/// Queues the product on stream().
void multiply(const BlasProduct& product);
/// multiply() for matrices at any addresses: a.at, b.at and c are arrays of `batch` pointers on the device.
void multiply_listed(const BlasProduct& product);

}  // namespace heed::cuda
