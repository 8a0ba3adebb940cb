// Products of an acted device: OpenBLAS behind the names of cuBLAS, one matrix of the batch after the other.
#include "core/cuda/acted/cublas_v2.h"

#include <algorithm>
#include <vector>

#include "core/blas.h"
#include "core/dtype.h"
#include "core/parallel.h"

namespace {

double scalar(const void* at, cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_64F ? *static_cast<const double*>(at)
                                       : static_cast<double>(*static_cast<const float*>(at));
}

/// What a call says, kept for a graph.
struct Call {
  bool turned_a, turned_b;
  int64_t m, n, k;
  double alpha, beta;
  cudaDataType_t factors, result;
  int64_t lda, ldb, ldc;

  Call(cublasOperation_t turn_a, cublasOperation_t turn_b, int rows, int columns, int depth,
       const void* scale, const void* keep, cudaDataType_t from, cudaDataType_t to, int step_a, int step_b,
       int step_c, cublasComputeType_t compute)
      : turned_a(turn_a == CUBLAS_OP_T),
        turned_b(turn_b == CUBLAS_OP_T),
        m(rows),
        n(columns),
        k(depth),
        alpha(scalar(scale, compute)),
        beta(scalar(keep, compute)),
        factors(from),
        result(to),
        lda(step_a),
        ldb(step_b),
        ldc(step_c) {}

  bool right() const {
    const bool types = factors == CUDA_R_64F ? result == CUDA_R_64F : result == CUDA_R_32F;
    return types && m >= 0 && n >= 0 && k >= 0 && lda >= std::max<int64_t>(1, turned_a ? k : m) &&
           ldb >= std::max<int64_t>(1, turned_b ? n : k) && ldc >= std::max<int64_t>(1, m);
  }
};

template <class T>
void multiply(const Call& call, const T* a, const T* b, T* c) {
  // By columns what is c = a b is, by rows, c' = b' a'.
  heed::blas::gemm(call.n, call.m, call.k, static_cast<T>(call.alpha), {b, call.ldb, call.turned_b},
                   {a, call.lda, call.turned_a}, static_cast<T>(call.beta), c, call.ldc);
}

/// The numbers of a matrix of bf16 as floats.
std::vector<float> widened(const void* from, bool turned, int64_t rows, int64_t columns, int64_t step) {
  const int64_t lines = turned ? rows : columns, line = turned ? columns : rows;
  std::vector<float> out(static_cast<size_t>(lines == 0 ? 0 : (lines - 1) * step + line));
  const auto* numbers = static_cast<const heed::bf16*>(from);
  for (int64_t i = 0; i < lines; ++i) {
    for (int64_t j = 0; j < line; ++j) out[static_cast<size_t>(i * step + j)] = numbers[i * step + j];
  }
  return out;
}

void multiply(const Call& call, const void* a, const void* b, void* c) {
  if (call.factors == CUDA_R_64F)
    return multiply(call, static_cast<const double*>(a), static_cast<const double*>(b),
                    static_cast<double*>(c));
  if (call.factors == CUDA_R_32F)
    return multiply(call, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c));
  const auto wide_a = widened(a, call.turned_a, call.m, call.k, call.lda);
  const auto wide_b = widened(b, call.turned_b, call.k, call.n, call.ldb);
  multiply(call, wide_a.data(), wide_b.data(), static_cast<float*>(c));
}

/// Queues f(i) for each matrix of the batch, once all that the call names is seen to be in order.
template <class F>
cublasStatus_t queue(cublasHandle_t handle, const Call& call, bool right, int batch, F f) {
  if (!right || !call.right()) return CUBLAS_STATUS_INVALID_VALUE;
  const cudaError_t status = heed::acted::enqueue(handle->stream, [=] {
    const heed::acted::Open open;
    heed::parallel_for(batch, f);
  });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

const void* moved(const void* from, cudaDataType_t type, int64_t elements) {
  const int64_t size = type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
  return static_cast<const std::byte*>(from) + elements * size;
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
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, size_t) {
  return heed::acted::on_device(workspace) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t turn_a,
                                          cublasOperation_t turn_b, int m, int n, int k, const void* alpha,
                                          const void* a, cudaDataType_t type_a, int lda, long long between_a,
                                          const void* b, cudaDataType_t type_b, int ldb, long long between_b,
                                          const void* beta, void* c, cudaDataType_t type_c, int ldc,
                                          long long between_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t) {
  using heed::acted::on_device;
  const Call call(turn_a, turn_b, m, n, k, alpha, beta, type_a, type_c, lda, ldb, ldc, compute);
  return queue(handle, call, type_a == type_b && on_device(a) && on_device(b) && on_device(c), batch,
               [=](int64_t i) {
                 multiply(call, moved(a, type_a, i * between_a), moved(b, type_b, i * between_b),
                          const_cast<void*>(moved(c, type_c, i * between_c)));
               });
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t turn_a, cublasOperation_t turn_b,
                                   int m, int n, int k, const void* alpha, const void* const* a,
                                   cudaDataType_t type_a, int lda, const void* const* b,
                                   cudaDataType_t type_b, int ldb, const void* beta, void* const* c,
                                   cudaDataType_t type_c, int ldc, int batch, cublasComputeType_t compute,
                                   cublasGemmAlgo_t) {
  using heed::acted::on_device;
  const Call call(turn_a, turn_b, m, n, k, alpha, beta, type_a, type_c, lda, ldb, ldc, compute);
  return queue(handle, call, type_a == type_b && on_device(a) && on_device(b) && on_device(c), batch,
               [=](int64_t i) { multiply(call, a[i], b[i], c[i]); });
}
