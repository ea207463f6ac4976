# Installs the library into a folder of its own, builds examples/cpp_gemm against it as a user would, and runs that.
#   cmake -DBUILD=… -DSOURCE=… -DWORK=… -DGENERATOR=… -DCOMPILER=… -DPYTHON=… -P consumer.cmake
file(REMOVE_RECURSE "${WORK}")

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed: ${result}")
  endif()
endfunction()

run("installing" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
run("configuring the example" "${CMAKE_COMMAND}" -S "${SOURCE}/examples/cpp_gemm" -B "${WORK}/build" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DPython_EXECUTABLE=${PYTHON}" -DCMAKE_BUILD_TYPE=Release)
run("building the example" "${CMAKE_COMMAND}" --build "${WORK}/build")
run("running the example" "${WORK}/build/cpp_gemm")
