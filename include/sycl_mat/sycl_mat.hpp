// Everything a user of the C++ library needs.
#pragma once

#include "sycl_mat/array.hpp"
#include "sycl_mat/device.hpp"
#include "sycl_mat/errors.hpp"
#include "sycl_mat/gemm.hpp"
#include "sycl_mat/params.hpp"
#include "sycl_mat/types.hpp"
