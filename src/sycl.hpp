// The SYCL headers that the library uses (all of <sycl/sycl.hpp> takes twice as long to compile), with the one switch that host code
// compiled by an ordinary C++ compiler needs.
#pragma once

#ifndef SYCL_DISABLE_FSYCL_SYCLHPP_WARNING
#define SYCL_DISABLE_FSYCL_SYCLHPP_WARNING
#endif
#include <sycl/detail/core.hpp>
#include <sycl/ext/intel/info/kernel.hpp>
#include <sycl/ext/oneapi/experimental/device_architecture.hpp>
#include <sycl/ext/oneapi/experimental/enqueue_functions.hpp>
#include <sycl/ext/oneapi/experimental/syclbin_kernel_bundle.hpp>
#include <sycl/ext/oneapi/memcpy2d.hpp>
#include <sycl/kernel_bundle.hpp>
#include <sycl/properties/queue_properties.hpp>
#include <sycl/usm.hpp>
#include <sycl/version.hpp>
