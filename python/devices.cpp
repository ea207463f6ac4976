// Devices and kernels as Python lists.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "options.hpp"
#include "without_gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sycl_mat::python {

void bind_devices(nb::module_& m) {
  nb::class_<DeviceInfo>(m, "Device", "What matters of a device for a matrix product. Sizes are in bytes; 0 means unknown.")
      .def_ro("name", &DeviceInfo::name)
      .def_ro("vendor", &DeviceInfo::vendor)
      .def_ro("platform", &DeviceInfo::platform)
      .def_ro("backend", &DeviceInfo::backend, "opencl, level_zero, cuda or hip")
      .def_ro("type", &DeviceInfo::type, "cpu, gpu or accelerator")
      .def_ro("selector", &DeviceInfo::selector, "what to pass as `device=`")
      .def_ro("driver_version", &DeviceInfo::driver_version)
      .def_ro("architecture", &DeviceInfo::architecture, "tuning family")
      .def_ro("fingerprint", &DeviceInfo::fingerprint, "stable identity of this model of device")
      .def_ro("compute_units", &DeviceInfo::compute_units)
      .def_ro("max_work_group_size", &DeviceInfo::max_work_group_size)
      .def_ro("local_memory", &DeviceInfo::local_memory)
      .def_ro("global_memory", &DeviceInfo::global_memory)
      .def_ro("max_allocation", &DeviceInfo::max_allocation)
      .def_ro("vector_width", &DeviceInfo::vector_width, "float32 elements of the native or preferred vector")
      .def_ro("has_bfloat16_dots", &DeviceInfo::has_bfloat16_dots, "a processor with AVX512_BF16")
      .def_ro("sub_group_sizes", &DeviceInfo::sub_group_sizes)
      .def_ro("l1_cache", &DeviceInfo::l1_cache)
      .def_ro("l2_cache", &DeviceInfo::l2_cache)
      .def_ro("l3_cache", &DeviceInfo::l3_cache)
      .def_ro("clock_mhz", &DeviceInfo::clock_mhz)
      .def_ro("has_fp64", &DeviceInfo::has_fp64)
      .def_ro("has_fp16", &DeviceInfo::has_fp16)
      .def_ro("usm_device", &DeviceInfo::usm_device)
      .def_ro("usm_host", &DeviceInfo::usm_host)
      .def_ro("usm_shared", &DeviceInfo::usm_shared)
      .def_ro("usm_system", &DeviceInfo::usm_system, "ordinary arrays go to kernels as they are")
      .def_ro("unified_memory", &DeviceInfo::unified_memory, "the device shares the host's physical memory")
      .def("__repr__", [](const DeviceInfo& d) { return "<sycl_mat.Device '" + d.selector + "': " + d.name + ">"; });

  nb::class_<KernelInfo>(m, "Kernel", "A kernel that `kernel=` can force.")
      .def_ro("name", &KernelInfo::name)
      .def_ro("summary", &KernelInfo::summary)
      .def_ro("params", &KernelInfo::params, "the constants it has: none, tile or pack")
      .def("__repr__", [](const KernelInfo& k) { return "<sycl_mat.Kernel '" + k.name + "': " + k.summary + ">"; });

  m.def("devices", &devices, nb::call_guard<WithoutGil>(),
        "Every SYCL device that ONEAPI_DEVICE_SELECTOR lets through, GPUs first. Empty: none was found.");
  m.def("kernels", &kernels, "Every kernel, in the order of the lessons; each can be forced by `kernel=name`.");
  m.def("last_kernel", &last_kernel, "Name of the kernel that this thread's last product ran; empty before the first.");
  m.def(
      "set_default_device",
      [](nb::handle device) {
        if (nb::isinstance<DeviceInfo>(device)) return set_default_device(nb::cast<const DeviceInfo&>(device).selector);
        if (device.is_none()) return set_default_device("");
        set_default_device(text_from(device, "device"));
      },
      "device"_a.none(), nb::sig("def set_default_device(device: Device | str | None) -> None"),
      "Which device `device=None` means from now on. Raises DeviceError, and changes nothing, where there is no such device.");
  m.def(
      "set_num_threads", [](int count, nb::handle device) { context_from(device).set_threads(count); }, "count"_a,
      "device"_a.none() = nb::none(), nb::sig("def set_num_threads(count: int, device: Device | str | None = None) -> None"),
      "How many of a CPU device's cores a product is shared among; 0: all. Raises UnsupportedError on other devices.");
  m.def(
      "get_num_threads", [](nb::handle device) { return context_from(device).threads(); }, "device"_a.none() = nb::none(),
      nb::sig("def get_num_threads(device: Device | str | None = None) -> int"),
      "How many cores (or compute units) a product is shared among.");
  m.def(
      "current_device", [](nb::handle device) { return context_from(device).device(); }, "device"_a.none() = nb::none(),
      nb::sig("def current_device(device: Device | str | None = None) -> Device"),
      "The device that a product with this `device=` runs on.");
}

}  // namespace sycl_mat::python
