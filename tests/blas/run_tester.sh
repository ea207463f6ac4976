#!/bin/sh
# run_tester.sh TESTER INPUTS LIBRARY KERNEL: runs a level-3 tester of the reference BLAS with LIBRARY preloaded and says whether the
# product passed. TESTER: xblat3s, xblat3d (Fortran names) or xscblat3, xdcblat3 (CBLAS); KERNEL: "any", or one to force.
# Exit status 77: there is no such tester here (Debian: apt install libblas-test).
set -eu
tester=$1 inputs=$2 library=$3 kernel=$4

if [ ! -x "$tester" ]; then
  echo "skipped: $(basename "$tester") was not found (Debian: apt install libblas-test)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
case $(basename "$tester") in
  xblat3s) letter=s routine=SGEMM symbol=sgemm_ ;;
  xblat3d) letter=d routine=DGEMM symbol=dgemm_ ;;
  xscblat3) letter=s routine=cblas_sgemm symbol=cblas_sgemm ;;
  xdcblat3) letter=d routine=cblas_dgemm symbol=cblas_dgemm ;;
  *) echo "unknown tester $tester"; exit 1 ;;
esac
if [ "$routine" = "$symbol" ]; then
  input=$inputs/cblas.in runs=2  # column-major and row-major
else
  input=$inputs/fortran.in runs=1
fi
# The reference's own sizes and scalars; with a kernel forced, sizes at which edges of its tiles are met.
sizes="6\n0 1 2 3 5 9" alphas="3\n0.0 1.0 0.7" betas="3\n0.0 1.0 1.3"
if [ "$kernel" != any ]; then
  sizes="5\n1 7 16 33 65" alphas="1\n0.7" betas="2\n0.0 1.3"
  export SYCL_MAT_BLAS_KERNEL="$kernel"
fi
sed -e "s/@ROUTINE@/$routine/" -e "s/@SIZES@/$sizes/" -e "s/@ALPHAS@/$alphas/" -e "s/@BETAS@/$betas/" "$input" > input

# LD_DEBUG names the library that each symbol was bound to: proof that it was ours that was tested.
LD_DEBUG=bindings LD_DEBUG_OUTPUT=bindings LD_PRELOAD=$library "$tester" < input > output 2> errors || { cat output errors; exit 1; }
cat errors
if [ -f report ]; then cat report; else cat output; fi > all
cat all
grep -q "$(basename "$library") \[0\]: normal symbol .$symbol'" bindings.* || { echo "FAILED: $symbol is not ours"; exit 1; }
if grep -q "sycl_mat:.*$kernel" errors; then echo "skipped: the kernel is not for this device"; exit 77; fi
if grep -q "sycl_mat:" errors; then echo "FAILED: a product fell back"; exit 1; fi
if grep -qE "FAIL|SUSPECT|\*\*\*" all; then echo "FAILED"; exit 1; fi
grep -q "$routine .*PASSED THE TESTS OF ERROR-EXITS" all
[ "$(grep -c "$routine .*PASSED THE .*COMPUTATIONAL TESTS" all)" -eq $runs ]
echo "passed"
