// Opening cuBLASLt, choosing its kernels once for each shape, and calling them.
#include "heed/core/cuda/runtime/blas_lt.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <map>
#include <optional>

namespace heed::cuda {
namespace {

/// The functions of cuBLASLt that Heed calls.
struct LtTable {
  decltype(cublasLtCreate)* create;
  decltype(cublasLtMatmul)* matmul;
  decltype(cublasLtMatmulAlgoGetHeuristic)* choose;
  decltype(cublasLtMatmulDescCreate)* make_call;
  decltype(cublasLtMatmulDescSetAttribute)* set_call;
  decltype(cublasLtMatrixLayoutCreate)* make_layout;
  decltype(cublasLtMatmulPreferenceCreate)* make_wishes;
  decltype(cublasLtMatmulPreferenceSetAttribute)* set_wishes;
  decltype(cublasLtMatmulPreferenceDestroy)* forget_wishes;
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

template <class F>
bool find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

std::optional<LtTable> open_table() {
  std::string why;
  void* library = open_library("libcublasLt.so", why);
  if (library == nullptr) return {};  // products and what follows them take turns then
  LtTable table{};
  const bool whole = find(library, "cublasLtCreate", table.create) &&
                     find(library, "cublasLtMatmul", table.matmul) &&
                     find(library, "cublasLtMatmulAlgoGetHeuristic", table.choose) &&
                     find(library, "cublasLtMatmulDescCreate", table.make_call) &&
                     find(library, "cublasLtMatmulDescSetAttribute", table.set_call) &&
                     find(library, "cublasLtMatrixLayoutCreate", table.make_layout) &&
                     find(library, "cublasLtMatmulPreferenceCreate", table.make_wishes) &&
                     find(library, "cublasLtMatmulPreferenceSetAttribute", table.set_wishes) &&
                     find(library, "cublasLtMatmulPreferenceDestroy", table.forget_wishes);
  return whole ? std::optional(table) : std::nullopt;
}

#endif

const std::optional<LtTable>& lt_table() {
  static const std::optional<LtTable> table = open_table();
  return table;
}

cublasLtEpilogue_t epilogue_of(Finish finish) {
  switch (finish) {
    case Finish::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Finish::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Finish::gelu_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Finish::gelu_back:
      return CUBLASLT_EPILOGUE_DGELU;
    case Finish::gelu_back_sums:
      return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    case Finish::sums_of_b:
      break;
  }
  return CUBLASLT_EPILOGUE_BGRADB;
}

/// The greatest power of two up to 256 that divides an address.
int64_t alignment(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at) | 256U;
  return static_cast<int64_t>(address & (~address + 1));
}

/// All that the choice of a kernel depends on.
using Key = std::array<int64_t, 18>;

Key key_of(const FinishedProduct& x) {
  const BlasProduct& p = x.product;
  return {p.m,
          p.n,
          p.k,
          p.a.step,
          p.b.step,
          p.c_step,
          p.a.transposed ? 1 : 0,
          p.b.transposed ? 1 : 0,
          p.beta != 0 ? 1 : 0,
          p.factors,
          p.result,
          p.exactness == Exactness::tf32 ? 1 : 0,
          static_cast<int64_t>(x.finish),
          alignment(p.a.at),
          alignment(p.b.at),
          alignment(p.c),
          alignment(x.bias),
          alignment(x.before)};
}

/// How products of one key are done.
struct Plan {
  cublasLtMatmulDesc_t call = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool possible = false;
};

template <class T>
void set(const LtTable& lt, cublasLtMatmulDesc_t call, cublasLtMatmulDescAttributes_t what, const T& value) {
  check(lt.set_call(call, what, &value, sizeof value), "describing a product");
}

void point(const LtTable& lt, const Plan& plan, const FinishedProduct& x) {
  if (x.bias != nullptr) set(lt, plan.call, CUBLASLT_MATMUL_DESC_BIAS_POINTER, x.bias);
  if (x.before != nullptr) set(lt, plan.call, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, x.before);
}

/// The matrix as it lies: before it is turned.
cublasLtMatrixLayout_t layout(const LtTable& lt, const Columns& x, int64_t rows, int64_t columns,
                              cudaDataType_t type) {
  cublasLtMatrixLayout_t made = nullptr;
  check(lt.make_layout(&made, type, static_cast<uint64_t>(x.transposed ? columns : rows),
                       static_cast<uint64_t>(x.transposed ? rows : columns), x.step),
        "describing a matrix");
  return made;
}

Plan make_plan(const LtTable& lt, cublasLtHandle_t handle, const FinishedProduct& x) {
  const BlasProduct& p = x.product;
  Plan plan;
  const cublasComputeType_t compute = p.exactness == Exactness::tf32 && p.factors == CUDA_R_32F
                                          ? CUBLAS_COMPUTE_32F_FAST_TF32
                                          : CUBLAS_COMPUTE_32F;
  check(lt.make_call(&plan.call, compute, CUDA_R_32F), "describing a product");
  const cublasOperation_t turn_a = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          turn_b = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(lt, plan.call, CUBLASLT_MATMUL_DESC_TRANSA, turn_a);
  set(lt, plan.call, CUBLASLT_MATMUL_DESC_TRANSB, turn_b);
  set(lt, plan.call, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(x.finish));
  if (x.before != nullptr) set(lt, plan.call, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.c_step);
  point(lt, plan, x);
  plan.a = layout(lt, p.a, p.m, p.k, p.factors);
  plan.b = layout(lt, p.b, p.k, p.n, p.factors);
  plan.c = layout(lt, {p.c, p.c_step, false, 0}, p.m, p.n, p.result);

  cublasLtMatmulPreference_t wishes = nullptr;
  check(lt.make_wishes(&wishes), "choosing a product");
  const auto wish = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
    check(lt.set_wishes(wishes, what, &value, sizeof value), "choosing a product");
  };
  wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes));
  // Sums of pieces of k are f32, whatever the type of the result.
  wish(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
       static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(alignment(p.a.at)));
  wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(alignment(p.b.at)));
  wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(alignment(p.c)));
  wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(alignment(p.c)));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      lt.choose(handle, plan.call, plan.a, plan.b, plan.c, plan.c, wishes, 1, &best, &found);
  plan.possible = status == CUBLAS_STATUS_SUCCESS && found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  plan.algorithm = best.algo;
  lt.forget_wishes(wishes);
  return plan;
}

/// What a thread keeps for as long as the program runs.
struct Handle {
  cublasLtHandle_t handle = nullptr;
  std::map<Key, Plan> plans;
};
thread_local Handle* own = nullptr;  // never destroyed: the device may be gone before the thread is

}  // namespace

bool multiply(const FinishedProduct& x) {
  const BlasProduct& p = x.product;
  if (!lt_table() || p.result == CUDA_R_64F) return false;
  const LtTable& lt = *lt_table();
  if (own == nullptr) {
    auto* made = new Handle;
    check(lt.create(&made->handle), "opening cuBLASLt");
    own = made;
  }
  const Key key = key_of(x);
  auto at = own->plans.find(key);
  if (at == own->plans.end()) at = own->plans.emplace(key, make_plan(lt, own->handle, x)).first;
  Plan& plan = at->second;
  if (!plan.possible) return false;
  point(lt, plan, x);
  const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
  const cublasStatus_t status =
      lt.matmul(own->handle, plan.call, &alpha, p.a.at, plan.a, p.b.at, plan.b, &beta, p.c, plan.c, p.c,
                plan.c, &plan.algorithm, blas_workspace(), static_cast<size_t>(workspace_bytes), stream());
  // A kernel may turn out not to be for this product after all: then there is none.
  plan.possible = status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE &&
                  status != CUBLAS_STATUS_ARCH_MISMATCH;
  if (!plan.possible) return false;
  check(status, "a product of matrices and what follows it");
  count_launches(1);
  return true;
}

}  // namespace heed::cuda
