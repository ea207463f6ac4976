// The device side's only vocabulary: work-item ids, barrier, local memory, vectors, element types, accessors.
//
// Two bodies behind one set of names. By default the compiler's own builtins, so that a kernel includes no header of the machine,
// builds in a third of the time, and needs no C++ library where it is compiled at run time. With SYCL_MAT_STANDARD_SYCL the standard
// SYCL headers, for ahead-of-time compilers and for editors.
#pragma once

#include "gemm_args.hpp"

// ---- default constants shared by all kernels; program.cpp replaces the lines between the two marks -------------------------------
// constants: begin
constexpr int ELEMENT = 0;      // type of A and B: 0 float32, 1 float64, 2 float16, 3 bfloat16, 4 int8
constexpr int TRANS_A = 0;      // 1: lda is the distance between A's columns
constexpr int TRANS_B = 0;      // 1: ldb is the distance between B's columns
constexpr int BETA = 0;         // 0: C is never read
constexpr int BIAS = 0;         // 0 none, 1 one value a column, 2 one value a row
constexpr int ACTIVATION = 0;   // 0 none, 1 relu, 2 gelu, 3 sigmoid, 4 tanh, 5 silu
// constants: end
