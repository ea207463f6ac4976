// The SYCL headers, with the one switch that host code compiled by an ordinary C++ compiler needs.
#pragma once

#ifndef SYCL_DISABLE_FSYCL_SYCLHPP_WARNING
#define SYCL_DISABLE_FSYCL_SYCLHPP_WARNING
#endif
#include <sycl/sycl.hpp>
