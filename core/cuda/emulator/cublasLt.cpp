// cuBLASLt of an emulated device: the product of the emulated cuBLAS, then the epilogue, element by element
// in double.
#include "heed/core/cuda/emulator/cublasLt.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "heed/core/cuda/emulator/matrix_product.h"
#include "heed/core/dtype.h"

namespace {

using heed::emulated::MatrixProduct;

/// The tanh of GELU; Hendrycks and Gimpel 2016, arXiv 1606.08415.
double gelu_tanh_term(double x) { return std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); }
double gelu(double x) { return 0.5 * x * (1 + gelu_tanh_term(x)); }
double gelu_slope(double x) {
  const double t = gelu_tanh_term(x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * x * x);
}

bool has(cublasLtEpilogue_t epilogue, int bits) { return (epilogue & bits) == bits; }

MatrixProduct product_of(const cublasLtMatmulDescOpaque_t& call, const cublasLtMatrixLayoutOpaque_t& a,
                         const cublasLtMatrixLayoutOpaque_t& b, const cublasLtMatrixLayoutOpaque_t& c) {
  const bool transposed_a = call.transpose_a == CUBLAS_OP_T, transposed_b = call.transpose_b == CUBLAS_OP_T;
  return {transposed_a,
          transposed_b,
          c.rows,
          c.columns,
          transposed_a ? a.rows : a.columns,
          1,
          0,
          a.type,
          CUDA_R_32F,
          a.step,
          b.step,
          c.step,
          call.compute};
}

/// Whether cuBLASLt has a kernel for the call, by its documentation.
bool has_kernel(const cublasLtMatmulDescOpaque_t& call, const cublasLtMatrixLayoutOpaque_t& a,
                const cublasLtMatrixLayoutOpaque_t& b, const cublasLtMatrixLayoutOpaque_t& c) {
  const MatrixProduct p = product_of(call, a, b, c);
  const int64_t of_a = p.transposed_a ? a.columns : a.rows, of_b = p.transposed_b ? b.rows : b.columns;
  const int64_t inner_b = p.transposed_b ? b.columns : b.rows;
  const bool typed = c.type == CUDA_R_32F || (c.type == CUDA_R_16BF && a.type == CUDA_R_16BF);
  if (a.type != b.type || !typed || !p.is_valid() || of_a != p.m || of_b != p.n || inner_b != p.k)
    return false;
  const bool sums = call.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  if (sums && c.type != CUDA_R_32F) return false;
  const bool biased = sums || has(call.epilogue, 4) || has(call.epilogue, 64 | 16);
  if (biased && call.bias == nullptr) return false;
  if (!has(call.epilogue, 128)) return true;
  return call.before != nullptr && call.before_step % 8 == 0 && call.before_step >= p.m;
}

/// The number of b at (l, j), as the product reads it.
double number_of(const cublasLtMatrixLayoutOpaque_t& layout, const void* at, bool transposed, int64_t l,
                 int64_t j) {
  const int64_t place = transposed ? j + l * layout.step : l + j * layout.step;
  if (layout.type == CUDA_R_16BF) return static_cast<const heed::bf16*>(at)[place];
  return static_cast<const float*>(at)[place];
}

/// The epilogue: from the sums of the product to c, which may be the same memory. Bias and `before` have the
/// type of c.
template <class T>
void finish(const cublasLtMatmulDescOpaque_t& call, const MatrixProduct& p, const float* sums, T* c) {
  auto *bias = static_cast<T*>(call.bias), *before = static_cast<T*>(call.before);
  const bool back = has(call.epilogue, 64);
  for (int64_t i = 0; i < p.m; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < p.n; ++j) {
      float x = sums[i + j * p.ldc];
      if (has(call.epilogue, 4)) x += bias[i];
      if (back) x = static_cast<float>(x * gelu_slope(before[i + j * call.before_step]));
      if (has(call.epilogue, 32)) {
        before[i + j * call.before_step] = x;
        x = static_cast<float>(gelu(x));
      }
      c[i + j * p.ldc] = x;
      sum += x;
    }
    if (back && has(call.epilogue, 16)) bias[i] = static_cast<float>(sum);
  }
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* call, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  *call = new cublasLtMatmulDescOpaque_t{
      compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t call, cublasLtMatmulDescAttributes_t what,
                                              const void* value, size_t bytes) {
  const auto set = [&](auto& to) {
    if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(call->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(call->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(call->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(call->bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(call->before);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(call->before_step);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t step) {
  *layout =
      new cublasLtMatrixLayoutOpaque_t{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), step};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void* value, size_t bytes) {
  if (bytes != (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8U : 4U))
    return CUBLAS_STATUS_INVALID_VALUE;
  preference->value[what] = 0;
  std::memcpy(&preference->value[what], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t call,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int max_results,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  for (const auto what :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES}) {
    if (preference->value[what] < 16) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (max_results < 1 || !has_kernel(*call, *a, *b, *c)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = 1;
  results[0] = {{}, 0, CUBLAS_STATUS_SUCCESS, 1};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t call, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void* workspace, size_t,
                              cudaStream_t stream) {
  using heed::emulated::on_device;
  if (c != d || !has_kernel(*call, *layout_a, *layout_b, *layout_c)) return CUBLAS_STATUS_INVALID_VALUE;
  for (const void* at : {a, b, c, static_cast<const void*>(workspace), static_cast<const void*>(call->bias),
                         static_cast<const void*>(call->before)}) {
    if (!on_device(at)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  MatrixProduct p = product_of(*call, *layout_a, *layout_b, *layout_c);
  p.alpha = static_cast<double>(*static_cast<const float*>(alpha));
  p.beta = static_cast<double>(*static_cast<const float*>(beta));
  const bool narrow = layout_c->type == CUDA_R_16BF;
  if (narrow && p.beta != 0) return CUBLAS_STATUS_INVALID_VALUE;  // Heed does not use it
  const cudaError_t status = heed::emulated::enqueue(stream, [=, how = *call, of_b = *layout_b] {
    const heed::emulated::Open open;
    if (narrow) {
      std::vector<float> sums(static_cast<size_t>(p.ldc * p.n));
      heed::emulated::multiply(p, a, b, sums.data());
      return finish(how, p, sums.data(), static_cast<heed::bf16*>(d));
    }
    heed::emulated::multiply(p, a, b, d);
    auto* made = static_cast<float*>(d);
    if (how.epilogue != CUBLASLT_EPILOGUE_BGRADB) return finish(how, p, made, made);
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < p.k; ++l) sum += number_of(of_b, b, p.transposed_b, l, j);
      static_cast<float*>(how.bias)[j] = static_cast<float>(sum);
    }
  });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
