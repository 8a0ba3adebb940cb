// SIMD for the kernels of the CPU: the one header that they include for it. It gives
//   heed::simd           vectors as wide as the registers of the instruction set, and their operations
//   heed::kernel::lanes  sums, dot products and maxima of rows, with the same bits on every instruction set
//   heed::math           exp, tanh, sigmoid and erf of one number, which the compiler vectorises
//   heed::kernel::target_isa the instruction set that this copy of the kernels is compiled for
// Code that CUDA compiles too includes math.h alone: the vector types are those of GCC and Clang.
#pragma once

#include "heed/core/kernels/simd/math.h"
#include "heed/core/kernels/simd/philox.h"
#include "heed/core/kernels/simd/row_reductions.h"
#include "heed/core/kernels/simd/target_isa.h"
#include "heed/core/kernels/simd/vector.h"
