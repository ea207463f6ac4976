// Errors of the caller, reported as the reference BLAS does: to the program's own handler where it has one.
#pragma once

namespace sycl_mat::blas {

/// `argument` of a Fortran routine ("SGEMM ", six letters) is wrong: calls the process's xerbla_, or prints its message. Returns.
void report(const char* routine, int argument);

/// The same of a CBLAS routine ("cblas_sgemm"); arguments count from 1, the layout. Calls the process's cblas_xerbla, or prints.
/// `fortran`: the number in the call that a row-major product becomes (A and B, M and N exchanged), which cblas_xerbla expects.
void report_c(const char* routine, int argument, int fortran, bool row_major);

}  // namespace sycl_mat::blas
