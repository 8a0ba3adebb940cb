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
double gelu_derivative(double x) {
  const double t = gelu_tanh_term(x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * x * x);
}

bool has(cublasLtEpilogue_t epilogue, int bits) { return (epilogue & bits) == bits; }

/// The product of a call, without alpha and beta.
MatrixProduct product_of(const cublasLtMatmulDescOpaque_t& call, const cublasLtMatrixLayoutOpaque_t& a,
                         const cublasLtMatrixLayoutOpaque_t& b, const cublasLtMatrixLayoutOpaque_t& c) {
  const bool transposed_a = call.transpose_a == CUBLAS_OP_T, transposed_b = call.transpose_b == CUBLAS_OP_T;
  return {.transposed_a = transposed_a,
          .transposed_b = transposed_b,
          .m = c.rows,
          .n = c.columns,
          .k = transposed_a ? a.rows : a.columns,
          .alpha = 1,
          .beta = 0,
          .factors = a.type,
          .result = CUDA_R_32F,
          .lda = a.ld,
          .ldb = b.ld,
          .ldc = c.ld,
          .compute = call.compute};
}

/// Whether cuBLASLt has a kernel for the call, by its documentation.
bool has_kernel(const cublasLtMatmulDescOpaque_t& call, const cublasLtMatrixLayoutOpaque_t& a,
                const cublasLtMatrixLayoutOpaque_t& b, const cublasLtMatrixLayoutOpaque_t& c) {
  const MatrixProduct p = product_of(call, a, b, c);
  const int64_t rows_a = p.transposed_a ? a.columns : a.rows;
  const auto [rows_b, columns_b] =
      p.transposed_b ? std::pair(b.columns, b.rows) : std::pair(b.rows, b.columns);
  const bool has_types = c.type == CUDA_R_32F || (c.type == CUDA_R_16BF && a.type == CUDA_R_16BF);
  if (a.type != b.type || !has_types || !p.is_valid() || rows_a != p.m || columns_b != p.n || rows_b != p.k)
    return false;
  const bool sums_b = call.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  if (sums_b && c.type != CUDA_R_32F) return false;
  const bool needs_bias =
      sums_b || has(call.epilogue, bias_bit) || has(call.epilogue, gelu_grad_bit | bias_grad_bit);
  if (needs_bias && call.bias == nullptr) return false;
  if (!has(call.epilogue, aux_bit)) return true;
  return call.before_gelu != nullptr && call.before_gelu_ld % 8 == 0 && call.before_gelu_ld >= p.m;
}

/// b_lj, where the matrix may be stored transposed.
double element(const cublasLtMatrixLayoutOpaque_t& layout, const void* b, bool transposed, int64_t l,
               int64_t j) {
  const int64_t index = transposed ? j + l * layout.ld : l + j * layout.ld;
  if (layout.type == CUDA_R_16BF) return static_cast<const heed::bf16*>(b)[index];
  return static_cast<const float*>(b)[index];
}

/// Computes c from the sums a b of the product by the epilogue; both may be the same memory. Bias and
/// `before_gelu` have the type of c.
template <class T>
void apply_epilogue(const cublasLtMatmulDescOpaque_t& call, const MatrixProduct& p, const float* sums, T* c) {
  auto *bias = static_cast<T*>(call.bias), *before_gelu = static_cast<T*>(call.before_gelu);
  const bool is_gelu_grad = has(call.epilogue, gelu_grad_bit);
  for (int64_t i = 0; i < p.m; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < p.n; ++j) {
      float x = sums[i + j * p.ldc];
      if (has(call.epilogue, bias_bit)) x += bias[i];
      if (is_gelu_grad) x = static_cast<float>(x * gelu_derivative(before_gelu[i + j * call.before_gelu_ld]));
      if (has(call.epilogue, gelu_bit)) {
        before_gelu[i + j * call.before_gelu_ld] = x;
        x = static_cast<float>(gelu(x));
      }
      c[i + j * p.ldc] = x;
      sum += x;
    }
    if (is_gelu_grad && has(call.epilogue, bias_grad_bit)) bias[i] = static_cast<float>(sum);
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
  const auto set = [&](auto& attribute) {
    if (bytes != sizeof attribute) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&attribute, value, bytes);
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
      return set(call->before_gelu);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(call->before_gelu_ld);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  *layout =
      new cublasLtMatrixLayoutOpaque_t{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), ld};
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
  for (const void* pointer :
       {a, b, c, static_cast<const void*>(workspace), static_cast<const void*>(call->bias),
        static_cast<const void*>(call->before_gelu)}) {
    if (!on_device(pointer)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  MatrixProduct p = product_of(*call, *layout_a, *layout_b, *layout_c);
  p.alpha = static_cast<double>(*static_cast<const float*>(alpha));
  p.beta = static_cast<double>(*static_cast<const float*>(beta));
  const bool is_bf16 = layout_c->type == CUDA_R_16BF;
  if (is_bf16 && p.beta != 0) return CUBLAS_STATUS_INVALID_VALUE;  // Heed does not use it
  const cudaError_t status = heed::emulated::enqueue(stream, [=, descriptor = *call, b_layout = *layout_b] {
    const heed::emulated::Open open;
    if (is_bf16) {
      std::vector<float> sums(static_cast<size_t>(p.ldc * p.n));
      heed::emulated::multiply(p, a, b, sums.data());
      return apply_epilogue(descriptor, p, sums.data(), static_cast<heed::bf16*>(d));
    }
    heed::emulated::multiply(p, a, b, d);
    auto* product = static_cast<float*>(d);
    if (descriptor.epilogue != CUBLASLT_EPILOGUE_BGRADB)
      return apply_epilogue(descriptor, p, product, product);
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < p.k; ++l) sum += element(b_layout, b, p.transposed_b, l, j);
      static_cast<float*>(descriptor.bias)[j] = static_cast<float>(sum);
    }
  });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
