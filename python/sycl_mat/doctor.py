"""What may be wrong with this machine's SYCL devices, and how to mend it."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import _core, _runtime

Verdict = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    verdict: Verdict
    what: str
    mend: str = ""


@dataclass(frozen=True)
class Machine:
    """Where the checks look; tests point it elsewhere."""

    vendors: Path = Path("/etc/OpenCL/vendors")
    render_nodes: Path = Path("/dev/dri")
    pci_devices: Path = Path("/sys/bus/pci/devices")
    nvidia_driver: Path = Path("/proc/driver/nvidia")


def examine(machine: Machine | None = None) -> list[Finding]:
    """Every check, in the order in which a device comes about: runtime, drivers, hardware, devices, cache."""
    machine = machine or Machine()
    return [
        *_runtime_versions(),
        *_cpu_driver(),
        *_icds(machine),
        *_intel_gpu(machine),
        *_nvidia_gpu(machine),
        *_selector(),
        *_devices(),
        *_cache_folder(),
    ]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _runtime_versions() -> Iterator[Finding]:
    runtime, driver = _version("intel-sycl-rt"), _version("intel-opencl-rt")
    if runtime is None:
        yield Finding("note", "the SYCL runtime does not come from PyPI (intel-sycl-rt is not installed here)")
        return
    yield Finding("ok", f"SYCL runtime {runtime}")
    if runtime.split(".")[0] != "2026":
        yield Finding(
            "problem",
            f"sycl_mat was built for the SYCL runtime 2026, installed is {runtime}",
            "pip install 'intel-sycl-rt>=2026.2,<2027'",
        )
    parts = {name: _version(name) for name in ("intel-cmplr-lib-rt", "intel-cmplr-lib-ur")}
    for name, found in parts.items():
        if found is not None and found.split(".")[:2] != runtime.split(".")[:2]:
            yield Finding("problem", f"{name} is {found}, the runtime {runtime}: they come in pairs", f"pip install {name}=={runtime}")
    if driver is not None and driver.split(".")[0] != runtime.split(".")[0]:
        yield Finding("problem", f"the CPU driver is {driver}, the runtime {runtime}", f"pip install 'intel-opencl-rt=={runtime}'")


def _cpu_driver() -> Iterator[Finding]:
    path = _runtime.find_library("intel-opencl-rt", _runtime.CPU_DRIVER)
    if path is None:
        yield Finding("problem", "the processor's OpenCL driver is missing, so the processor is no device", "pip install intel-opencl-rt")
        return
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        yield Finding("problem", f"the processor's driver does not load: {error}", "pip install --force-reinstall intel-opencl-rt tbb")
        return
    yield Finding("ok", f"processor's driver {path}")


def _icds(machine: Machine) -> Iterator[Finding]:
    folder = Path(os.environ.get("OCL_ICD_VENDORS", str(machine.vendors)))
    icds = sorted(folder.glob("*.icd")) if folder.is_dir() else []
    if not icds:
        yield Finding("note", f"no system OpenCL driver is registered in {folder}", "a GPU needs its vendor's: see below")
    for icd in icds:
        try:
            library = icd.read_text(errors="replace").strip().splitlines()[0]
        except (OSError, IndexError):
            yield Finding("problem", f"{icd} is empty or unreadable", "reinstall the driver package that owns it")
            continue
        try:
            ctypes.CDLL(library)
        except OSError as error:
            yield Finding("problem", f"{icd} names {library}, which does not load: {error}", "reinstall the driver package that owns it")
        else:
            yield Finding("ok", f"OpenCL driver {library}")


def _pci_display(machine: Machine, vendor: str) -> bool:
    for device in machine.pci_devices.glob("*"):
        try:
            if (device / "class").read_text().startswith("0x03") and (device / "vendor").read_text().strip() == vendor:
                return True
        except OSError:
            continue
    return False


def _loads(*names: str) -> bool:
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


def _intel_gpu(machine: Machine) -> Iterator[Finding]:
    if sys.platform != "linux":
        return
    if not _pci_display(machine, "0x8086"):
        yield Finding("ok", "no Intel GPU on the PCI bus, so none is missed")
        return
    nodes = sorted(machine.render_nodes.glob("renderD*")) if machine.render_nodes.is_dir() else []
    if not nodes:
        yield Finding(
            "problem",
            f"there is an Intel GPU, but no {machine.render_nodes}/renderD*: the kernel driver (i915 or xe) is not loaded, "
            "or a container hides it",
            f"containers: docker run --device {machine.render_nodes}; else: a kernel with i915 or xe for this GPU",
        )
    elif not any(os.access(node, os.R_OK | os.W_OK) for node in nodes):
        yield Finding("problem", f"no permission to use {nodes[0]}", "sudo usermod -aG render,video $USER, then log in again")
    else:
        yield Finding("ok", f"Intel GPU at {nodes[0]}")
    if not _loads("libze_loader.so.1"):
        yield Finding(
            "note",
            "no Level Zero loader: the GPU is reached through OpenCL only",
            "Debian, Ubuntu: apt install libze1 intel-level-zero-gpu; Fedora: dnf install oneapi-level-zero intel-level-zero",
        )
    if not any(machine.vendors.glob("intel*.icd")):
        yield Finding(
            "problem",
            "no OpenCL driver for Intel GPUs",
            "Debian, Ubuntu: apt install intel-opencl-icd; Fedora: dnf install intel-compute-runtime",
        )


def _nvidia_gpu(machine: Machine) -> Iterator[Finding]:
    if not (machine.nvidia_driver.exists() or _pci_display(machine, "0x10de")):
        return
    sycl = _runtime.find_library("intel-sycl-rt", _runtime.SYCL_LIBRARY)
    beside = sycl is not None and (sycl.parent / "libur_adapter_cuda.so.0").exists()
    if beside or _loads("libur_adapter_cuda.so.0"):
        yield Finding("ok", "NVIDIA GPU, and the CUDA adapter of the SYCL runtime")
    else:
        yield Finding(
            "problem",
            "there is an NVIDIA GPU, but the SYCL runtime has no CUDA adapter (libur_adapter_cuda.so.0)",
            "install Codeplay's oneAPI plug-in for NVIDIA GPUs of the same version as intel-sycl-rt",
        )
    if not _loads("libcuda.so.1"):
        yield Finding("problem", "libcuda.so.1 does not load", "install NVIDIA's driver; in a container, start it with --gpus all")


def _selector() -> Iterator[Finding]:
    selector = os.environ.get("ONEAPI_DEVICE_SELECTOR")
    if selector:
        yield Finding("note", f"ONEAPI_DEVICE_SELECTOR={selector} hides every other device", "unset ONEAPI_DEVICE_SELECTOR")


def _devices() -> Iterator[Finding]:
    found = _core.devices()
    for device in found:
        yield Finding("ok", f"device {device.selector}: {device.name}, driver {device.driver_version}")
    if not found:
        yield Finding(
            "problem",
            "the SYCL runtime finds no device",
            "pip install intel-opencl-rt for the processor (x86-64); for a GPU install its driver, as said above",
        )


def cache_folder() -> Path:
    """Where compiled kernels are kept; as src/disk_cache.cpp has it."""
    return Path(_core.cache_folder())


def _cache_folder() -> Iterator[Finding]:
    folder = cache_folder()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    mend = "make it writable, or set SYCL_MAT_CACHE_DIR to a folder that is"
    if not existing.is_dir():
        yield Finding("problem", f"the cache folder {folder} cannot be: {existing} is a file", mend)
    elif not os.access(existing, os.W_OK | os.X_OK):
        yield Finding("problem", f"{existing} is not writable: kernels are compiled anew in each process", mend)
    else:
        status = os.statvfs(existing) if hasattr(os, "statvfs") else None
        if status is not None and status.f_bavail * status.f_frsize < 64 << 20:
            yield Finding("problem", f"the disk of the cache folder {folder} is full", "free some space, or set SYCL_MAT_CACHE_DIR")
        elif folder.exists() and hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            yield Finding("problem", f"the cache folder {folder} belongs to another user, so it is not used", mend)
        else:
            yield Finding("ok", f"cache folder {folder}")
