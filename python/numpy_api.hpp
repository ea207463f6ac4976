// NumPy's C API, the same table for every file of the module: bindings.cpp defines SYCL_MAT_IMPORT_NUMPY and fills it.
#pragma once

#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL sycl_mat_numpy_api
#ifndef SYCL_MAT_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
