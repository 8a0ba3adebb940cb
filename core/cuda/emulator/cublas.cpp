// cuBLAS of an emulated device: products by OpenBLAS, one matrix of the batch after the other.
#include "heed/core/cuda/emulator/matrix_product.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "heed/core/dtype.h"
#include "heed/core/parallel/blas.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::emulated {
namespace {

/// The product by OpenBLAS, in the type of the factors.
template <class T>
void multiply_exact(const MatrixProduct& call, const T* a, const T* b, T* c) {
  // c = a b by columns is c^T = b^T a^T by rows.
  blas::gemm(call.n, call.m, call.k, static_cast<T>(call.alpha), {b, call.ldb, call.transposed_b},
             {a, call.lda, call.transposed_a}, static_cast<T>(call.beta), c, call.ldc);
}

/// x rounded to tf32, which has 10 bits of mantissa; ties away from zero.
float rounded_tf32(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7f800000U) == 0x7f800000U) return x;  // infinite, or no number
  return std::bit_cast<float>((bits + 0x1000U) & 0xffffe000U);
}

/// A stored column-major matrix [rows, columns] as floats, with the same ld; f32 is rounded to tf32.
template <class T>
std::vector<float> rounded(const void* matrix, int64_t rows, int64_t columns, int64_t ld) {
  std::vector<float> out(static_cast<size_t>(columns == 0 ? 0 : (columns - 1) * ld + rows));
  const auto* numbers = static_cast<const T*>(matrix);
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      const float x = numbers[j * ld + i];
      out[static_cast<size_t>(j * ld + i)] = std::is_same_v<T, float> ? rounded_tf32(x) : x;
    }
  }
  return out;
}

/// The product of factors of type T, rounded, with sums in f32.
template <class T>
void multiply_rounded(const MatrixProduct& call, const void* a, const void* b, void* c) {
  const auto rounded_a =
      call.transposed_a ? rounded<T>(a, call.k, call.m, call.lda) : rounded<T>(a, call.m, call.k, call.lda);
  const auto rounded_b =
      call.transposed_b ? rounded<T>(b, call.n, call.k, call.ldb) : rounded<T>(b, call.k, call.n, call.ldb);
  if (call.result == CUDA_R_32F)
    return multiply_exact(call, rounded_a.data(), rounded_b.data(), static_cast<float*>(c));
  // A result in bf16 is rounded once; beta is 0.
  MatrixProduct in_f32 = call;
  in_f32.ldc = std::max<int64_t>(1, call.m);
  std::vector<float> sums(static_cast<size_t>(in_f32.ldc * call.n));
  multiply_exact(in_f32, rounded_a.data(), rounded_b.data(), sums.data());
  for (int64_t j = 0; j < call.n; ++j)
    std::copy_n(sums.begin() + j * in_f32.ldc, call.m, static_cast<bf16*>(c) + j * call.ldc);
}

}  // namespace

bool MatrixProduct::is_valid() const {
  const bool is_rounded = result == CUDA_R_16BF && factors == CUDA_R_16BF && beta == 0;
  const bool has_valid_types = factors == CUDA_R_64F
                                   ? result == CUDA_R_64F && compute == CUBLAS_COMPUTE_64F
                                   : (result == CUDA_R_32F || is_rounded) && compute != CUBLAS_COMPUTE_64F;
  return has_valid_types && m >= 0 && n >= 0 && k >= 0 && lda >= std::max<int64_t>(1, transposed_a ? k : m) &&
         ldb >= std::max<int64_t>(1, transposed_b ? n : k) && ldc >= std::max<int64_t>(1, m);
}

void multiply(const MatrixProduct& call, const void* a, const void* b, void* c) {
  if (call.factors == CUDA_R_64F) {
    return multiply_exact(call, static_cast<const double*>(a), static_cast<const double*>(b),
                          static_cast<double*>(c));
  }
  if (call.factors == CUDA_R_16BF) return multiply_rounded<bf16>(call, a, b, c);
  if (call.compute == CUBLAS_COMPUTE_32F_FAST_TF32) return multiply_rounded<float>(call, a, b, c);
  multiply_exact(call, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c));
}

}  // namespace heed::emulated

using heed::emulated::MatrixProduct;
using heed::emulated::multiply;

namespace {

/// alpha or beta, which cuBLAS takes in the type of the sums.
double scalar(const void* pointer, cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_64F ? *static_cast<const double*>(pointer)
                                       : static_cast<double>(*static_cast<const float*>(pointer));
}

MatrixProduct product(cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m, int n, int k,
                      const void* alpha, const void* beta, cudaDataType_t factors, cudaDataType_t result,
                      int lda, int ldb, int ldc, cublasComputeType_t compute) {
  return {.transposed_a = transpose_a == CUBLAS_OP_T,
          .transposed_b = transpose_b == CUBLAS_OP_T,
          .m = m,
          .n = n,
          .k = k,
          .alpha = scalar(alpha, compute),
          .beta = scalar(beta, compute),
          .factors = factors,
          .result = result,
          .lda = lda,
          .ldb = ldb,
          .ldc = ldc,
          .compute = compute};
}

cublasStatus_t status_of(cudaError_t status) {
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

const void* element_at(const void* matrix, cudaDataType_t type, int64_t index) {
  const int64_t size = type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
  return static_cast<const std::byte*>(matrix) + index * size;
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;  // sums are never rounded on the way here
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, size_t) {
  return heed::emulated::on_device(workspace) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                                          cublasOperation_t transpose_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType_t type_a, int lda,
                                          long long between_a, const void* b, cudaDataType_t type_b, int ldb,
                                          long long between_b, const void* beta, void* c,
                                          cudaDataType_t type_c, int ldc, long long between_c, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  using heed::emulated::on_device;
  const MatrixProduct call =
      product(transpose_a, transpose_b, m, n, k, alpha, beta, type_a, type_c, lda, ldb, ldc, compute);
  if (type_a != type_b || !call.is_valid() || !on_device(a) || !on_device(b) || !on_device(c))
    return CUBLAS_STATUS_INVALID_VALUE;
  return status_of(heed::emulated::enqueue(handle->stream, [=] {
    const heed::emulated::Open open;
    heed::parallel_for(batch, [&](int64_t i) {
      multiply(call, element_at(a, type_a, i * between_a), element_at(b, type_b, i * between_b),
               const_cast<void*>(element_at(c, type_c, i * between_c)));
    });
  }));
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType_t type_a, int lda, const void* b,
                            cudaDataType_t type_b, int ldb, const void* beta, void* c, cudaDataType_t type_c,
                            int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, 0, b,
                                    type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, compute, algorithm);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                                   cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
                                   const void* const* a, cudaDataType_t type_a, int lda, const void* const* b,
                                   cudaDataType_t type_b, int ldb, const void* beta, void* const* c,
                                   cudaDataType_t type_c, int ldc, int batch, cublasComputeType_t compute,
                                   cublasGemmAlgo_t) {
  using heed::emulated::on_device;
  const MatrixProduct call =
      product(transpose_a, transpose_b, m, n, k, alpha, beta, type_a, type_c, lda, ldb, ldc, compute);
  if (type_a != type_b || !call.is_valid() || !on_device(a) || !on_device(b) || !on_device(c))
    return CUBLAS_STATUS_INVALID_VALUE;
  return status_of(heed::emulated::enqueue(handle->stream, [=] {
    const heed::emulated::Open open;
    // cuBLAS chooses kernels without the addresses, which are on the device, and may assume their alignment.
    const bool uses_tensor_cores = type_a == CUDA_R_16BF || compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    const auto is_aligned = [](const void* pointer) {
      return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
    };
    for (int i = 0; i < batch && uses_tensor_cores; ++i) {
      if (is_aligned(a[i]) && is_aligned(b[i]) && is_aligned(c[i])) continue;
      std::fprintf(stderr, "heed: emulated device: matrix %d of a list does not begin at 16 bytes\n", i);
      std::abort();  // no caller would catch an exception of a stream
    }
    heed::parallel_for(batch, [&](int64_t i) { multiply(call, a[i], b[i], c[i]); });
  }));
}
