// Matrix products by cuBLAS, whose library is opened at the first product.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <string>

#include "heed/core/cuda/runtime/stream.h"

namespace heed::cuda {

/// The functions of cuBLAS that Heed calls, found by name. Those of an emulated device call OpenBLAS.
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
  cublasStatus_t (*set_math_mode)(cublasHandle_t, cublasMath_t);
  cublasStatus_t (*version)(cublasHandle_t, int*);
  OneGemm* gemm_one;        ///< one product: the only form with split-k kernels
  Gemm* gemm;               ///< a batch of matrices at equal distances
  ListedGemm* gemm_listed;  ///< a batch of matrices at any addresses
};

/// The functions of cuBLAS, found at the first call. Fault::device where the library or one of them is
/// missing.
const BlasTable& blas_table();
/// Opens a library of CUDA 13 or 12, such as "libcublas.so". Null, with the reason in `why`, where it is
/// missing.
void* open_library(const std::string& name, std::string& why);
/// The cuBLAS handle of this thread, which queues products on stream().
cublasHandle_t blas_handle();
/// Size of cuBLAS's workspace, as NVIDIA recommends for Hopper. Heed allocates it, since memory that cuBLAS
/// allocates itself cannot be part of a captured step.
inline constexpr int64_t workspace_bytes = int64_t{32} << 20;
/// The workspace of this thread's handle.
void* blas_workspace();
/// Throws Fault::device unless `status` is success; `what` says what was tried.
void check(cublasStatus_t status, const char* what);

/// The precision of the factors in a product of f32.
enum class Exactness : uint8_t { f32, tf32 };

/// A batch of column-major matrices.
struct ColumnMajorMatrix {
  const void* data;      ///< the first matrix
  int64_t ld;            ///< elements from one column to the next
  bool transposed;       ///< the product takes the transpose of what is stored
  int64_t batch_stride;  ///< elements from one matrix of the batch to the next
};

/// c [m, n] = alpha a [m, k] b [k, n] + beta c for a batch of column-major matrices. Sums are f32, or f64 for
/// factors of f64.
struct BlasProduct {
  int64_t m, n, k, batch;
  ColumnMajorMatrix a, b;
  void* c;
  int64_t ldc, c_batch_stride;
  double alpha, beta;
  cudaDataType_t factors, result;  ///< types of a and b, and of c
  Exactness exactness = Exactness::f32;
};
/// Queues the product on stream().
void multiply(const BlasProduct& product);
/// multiply() for matrices at any addresses: a.at, b.at and c are arrays of `batch` pointers on the device.
void multiply_listed(const BlasProduct& product);

}  // namespace heed::cuda
