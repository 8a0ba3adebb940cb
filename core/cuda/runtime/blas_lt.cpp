// Opens cuBLASLt, chooses a kernel once for each shape of a product, and calls it.
#include "heed/core/cuda/runtime/blas_lt.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <iterator>
#include <map>
#include <optional>

namespace heed::cuda {
namespace {

/// The functions of cuBLASLt that Heed calls.
struct LtTable {
  decltype(cublasLtCreate)* create;
  decltype(cublasLtMatmul)* matmul;
  decltype(cublasLtMatmulAlgoGetHeuristic)* choose;
  decltype(cublasLtMatmulDescCreate)* make_descriptor;
  decltype(cublasLtMatmulDescSetAttribute)* set_descriptor;
  decltype(cublasLtMatrixLayoutCreate)* make_layout;
  decltype(cublasLtMatmulPreferenceCreate)* make_preference;
  decltype(cublasLtMatmulPreferenceSetAttribute)* set_preference;
  decltype(cublasLtMatmulPreferenceDestroy)* destroy_preference;
};

#if defined(HEED_CUDA_EMULATED) && HEED_CUDA_EMULATED

std::optional<LtTable> open_table() {
  return LtTable{cublasLtCreate,
                 cublasLtMatmul,
                 cublasLtMatmulAlgoGetHeuristic,
                 cublasLtMatmulDescCreate,
                 cublasLtMatmulDescSetAttribute,
                 cublasLtMatrixLayoutCreate,
                 cublasLtMatmulPreferenceCreate,
                 cublasLtMatmulPreferenceSetAttribute,
                 cublasLtMatmulPreferenceDestroy};
}

#else

/// Sets `function` to the function of that name; false where the library lacks it.
template <class F>
bool find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

std::optional<LtTable> open_table() {
  std::string why;
  void* library = open_library("libcublasLt.so", why);
  if (library == nullptr) return {};  // callers then compute product and epilogue in separate kernels
  LtTable table{};
  const bool complete = find(library, "cublasLtCreate", table.create) &&
                        find(library, "cublasLtMatmul", table.matmul) &&
                        find(library, "cublasLtMatmulAlgoGetHeuristic", table.choose) &&
                        find(library, "cublasLtMatmulDescCreate", table.make_descriptor) &&
                        find(library, "cublasLtMatmulDescSetAttribute", table.set_descriptor) &&
                        find(library, "cublasLtMatrixLayoutCreate", table.make_layout) &&
                        find(library, "cublasLtMatmulPreferenceCreate", table.make_preference) &&
                        find(library, "cublasLtMatmulPreferenceSetAttribute", table.set_preference) &&
                        find(library, "cublasLtMatmulPreferenceDestroy", table.destroy_preference);
  return complete ? std::optional(table) : std::nullopt;
}

#endif

const std::optional<LtTable>& lt_table() {
  static const std::optional<LtTable> table = open_table();
  return table;
}

/// cuBLASLt's names of the epilogues, in the order of Epilogue.
constexpr cublasLtEpilogue_t epilogues[] = {CUBLASLT_EPILOGUE_BIAS,          CUBLASLT_EPILOGUE_GELU_AUX,
                                            CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
                                            CUBLASLT_EPILOGUE_DGELU_BGRAD,   CUBLASLT_EPILOGUE_BGRADB};
static_assert(std::size(epilogues) == static_cast<size_t>(Epilogue::column_sums_of_b) + 1);
static_assert(epilogues[static_cast<size_t>(Epilogue::gelu_back)] == CUBLASLT_EPILOGUE_DGELU);

/// The largest power of two up to 256 that divides an address.
int64_t alignment(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer) | 256U;
  return static_cast<int64_t>(address & (~address + 1));
}

/// Everything on which the choice of a kernel depends.
using PlanKey = std::array<int64_t, 18>;

PlanKey key_of(const ProductWithEpilogue& x) {
  const BlasProduct& p = x.product;
  return {p.m,
          p.n,
          p.k,
          p.a.ld,
          p.b.ld,
          p.ldc,
          p.a.transposed ? 1 : 0,
          p.b.transposed ? 1 : 0,
          p.beta != 0 ? 1 : 0,
          p.factors,
          p.result,
          p.exactness == Exactness::tf32 ? 1 : 0,
          static_cast<int64_t>(x.epilogue),
          alignment(p.a.data),
          alignment(p.b.data),
          alignment(p.c),
          alignment(x.bias),
          alignment(x.before_gelu)};
}

/// The kernel for products of one key, and its descriptors.
struct Plan {
  cublasLtMatmulDesc_t descriptor = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool is_possible = false;
};

template <class T>
void set(const LtTable& lt, cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
         const T& value) {
  check(lt.set_descriptor(descriptor, attribute, &value, sizeof value), "describing a product");
}

/// Gives the descriptor the addresses that the epilogue reads and writes.
void set_epilogue_pointers(const LtTable& lt, const Plan& plan, const ProductWithEpilogue& x) {
  if (x.bias != nullptr) set(lt, plan.descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, x.bias);
  if (x.before_gelu != nullptr)
    set(lt, plan.descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, x.before_gelu);
}

/// Describes a matrix [rows, columns] as it is stored, before the product transposes it.
cublasLtMatrixLayout_t layout(const LtTable& lt, const ColumnMajorMatrix& x, int64_t rows, int64_t columns,
                              cudaDataType_t type) {
  cublasLtMatrixLayout_t made = nullptr;
  check(lt.make_layout(&made, type, static_cast<uint64_t>(x.transposed ? columns : rows),
                       static_cast<uint64_t>(x.transposed ? rows : columns), x.ld),
        "describing a matrix");
  return made;
}

/// Describes the product to cuBLASLt and lets its heuristic choose a kernel.
Plan make_plan(const LtTable& lt, cublasLtHandle_t handle, const ProductWithEpilogue& x) {
  const BlasProduct& p = x.product;
  Plan plan;
  const cublasComputeType_t compute = p.exactness == Exactness::tf32 && p.factors == CUDA_R_32F
                                          ? CUBLAS_COMPUTE_32F_FAST_TF32
                                          : CUBLAS_COMPUTE_32F;
  check(lt.make_descriptor(&plan.descriptor, compute, CUDA_R_32F), "describing a product");
  const cublasOperation_t transpose_a = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          transpose_b = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(lt, plan.descriptor, CUBLASLT_MATMUL_DESC_TRANSA, transpose_a);
  set(lt, plan.descriptor, CUBLASLT_MATMUL_DESC_TRANSB, transpose_b);
  set(lt, plan.descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogues[static_cast<size_t>(x.epilogue)]);
  if (x.before_gelu != nullptr) set(lt, plan.descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.ldc);
  set_epilogue_pointers(lt, plan, x);
  plan.a = layout(lt, p.a, p.m, p.k, p.factors);
  plan.b = layout(lt, p.b, p.k, p.n, p.factors);
  plan.c = layout(lt, {.data = p.c, .ld = p.ldc, .transposed = false, .batch_stride = 0}, p.m, p.n, p.result);

  cublasLtMatmulPreference_t preference = nullptr;
  check(lt.make_preference(&preference), "choosing a product");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check(lt.set_preference(preference, attribute, &value, sizeof value), "choosing a product");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes));
  // Split-k kernels add f32 partial sums, also for results in bf16.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(alignment(p.a.data)));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(alignment(p.b.data)));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(alignment(p.c)));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(alignment(p.c)));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      lt.choose(handle, plan.descriptor, plan.a, plan.b, plan.c, plan.c, preference, 1, &best, &found);
  plan.is_possible = status == CUBLAS_STATUS_SUCCESS && found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  plan.algorithm = best.algo;
  lt.destroy_preference(preference);
  return plan;
}

/// A thread's cuBLASLt handle, and its plans.
struct Handle {
  cublasLtHandle_t handle = nullptr;
  std::map<PlanKey, Plan> plans;
};
thread_local Handle* thread_handle = nullptr;  // never destroyed: the device may be gone before the thread is

}  // namespace

bool multiply(const ProductWithEpilogue& x) {
  const BlasProduct& p = x.product;
  if (!lt_table() || p.result == CUDA_R_64F) return false;
  const LtTable& lt = *lt_table();
  if (thread_handle == nullptr) {
    auto* new_handle = new Handle;
    check(lt.create(&new_handle->handle), "opening cuBLASLt");
    thread_handle = new_handle;
  }
  const PlanKey key = key_of(x);
  auto found = thread_handle->plans.find(key);
  if (found == thread_handle->plans.end())
    found = thread_handle->plans.emplace(key, make_plan(lt, thread_handle->handle, x)).first;
  Plan& plan = found->second;
  if (!plan.is_possible) return false;
  set_epilogue_pointers(lt, plan, x);
  const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
  const cublasStatus_t status = lt.matmul(thread_handle->handle, plan.descriptor, &alpha, p.a.data, plan.a,
                                          p.b.data, plan.b, &beta, p.c, plan.c, p.c, plan.c, &plan.algorithm,
                                          blas_workspace(), static_cast<size_t>(workspace_bytes), stream());
  // A kernel may refuse the product when called: then the plan is impossible.
  plan.is_possible = status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE &&
                     status != CUBLAS_STATUS_ARCH_MISMATCH;
  if (!plan.is_possible) return false;
  check(status, "a product of matrices and what follows it");
  count_launches(1);
  return true;
}

}  // namespace heed::cuda
