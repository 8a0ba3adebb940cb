// cuBLAS, opened when the first product is asked for: one table of its functions.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <string>

#include "heed/core/cuda/runtime/stream.h"

namespace heed::cuda {

/// The functions of cuBLAS that Heed calls, found by name; emulated: ours, on OpenBLAS.
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
  OneGemm* gemm_one;        // the only form that may cut k into pieces for several blocks
  Gemm* gemm;               // matrices at equal distances
  ListedGemm* gemm_listed;  // anywhere
};

/// Opens the library once. Fault::device naming what is missing where that fails.
const BlasTable& blas_table();
/// A library of the toolkit's version 13 or 12, such as "libcublas.so"; null where there is none, and `why`.
void* open_library(const std::string& name, std::string& why);
/// Of this thread, with its products on stream().
cublasHandle_t blas_handle();
/// What NVIDIA recommends for the fastest kernels of Hopper. Given by us, since cuBLAS's own cannot be
/// captured.
inline constexpr int64_t workspace_bytes = int64_t{32} << 20;
/// The workspace of this thread's handle.
void* blas_workspace();
void check(cublasStatus_t status, const char* what);

/// How many numbers of the factors' mantissas take part in a product of f32.
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
void multiply(const BlasProduct& product);
/// The same for matrices anywhere: a.at, b.at and c are arrays of `batch` pointers on the device.
void multiply_listed(const BlasProduct& product);

}  // namespace heed::cuda
