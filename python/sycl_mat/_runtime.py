"""Finds the SYCL runtime and the CPU's OpenCL driver wherever pip put them, before the native module is loaded.

Their wheels put shared libraries into ``<prefix>/lib``, which is another folder in a venv, in a user's folder, and in a build that pip
isolates. So the wheels' own records are asked first; where those do not tell the truth (``pip install --target`` drops files outside
site-packages), the usual prefixes are.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator
from pathlib import Path

SYCL_LIBRARY = "libsycl.so.9"
CPU_DRIVER = "libintelocl.so"
OPENCL_LOADER = "libOpenCL.so.1"


def _prefixes() -> Iterator[Path]:
    """Where a wheel's ``lib`` may be when its record is no help, nearest first."""
    package = Path(__file__).resolve().parent
    yield package.parent  # pip install --prefix into the folder of a --target installation
    yield from package.parents[1:4]
    yield Path(sys.prefix)
    if site.ENABLE_USER_SITE:
        yield Path(site.getuserbase())
    yield Path(sys.base_prefix)
    if "CMPLR_ROOT" in os.environ:  # an oneAPI installation whose setvars.sh was sourced
        yield Path(os.environ["CMPLR_ROOT"])


def _beside(name: str) -> Path | None:
    """The library in the <prefix>/lib above this package: an ordinary installation, where the module's run path leads too."""
    folders = Path(__file__).resolve().parents
    path = folders[3] / name if len(folders) > 3 else None
    return path if path is not None and path.exists() else None


def find_library(distribution: str, name: str) -> Path | None:
    """A shared library of an installed distribution, as an absolute path, or None."""
    beside = _beside(name)
    if beside is not None:
        return beside
    import importlib.metadata  # takes as long as the rest of the package: only where it is needed

    for candidate in importlib.metadata.distributions(name=distribution):
        for file in candidate.files or ():
            if file.name == name:
                recorded = Path(str(file.locate()))
                if recorded.exists():
                    return recorded.parent.resolve() / name
    for prefix in _prefixes():
        path = prefix / "lib" / name
        if path.exists():
            return path.parent.resolve() / name
    return None


def onemkl_folders() -> list[str]:
    """Where the libraries of the oneMKL backend are; empty where it is not installed."""
    wanted = (("onemkl-sycl-blas", "libmkl_sycl_blas.so.6"), ("mkl", "libmkl_core.so.3"), ("tbb", "libtbb.so.12"))
    found = (find_library(distribution, name) for distribution, name in wanted)
    return sorted({str(path.parent) for path in found if path is not None})


def _already_loadable(name: str) -> bool:
    import ctypes

    try:
        ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def prepare() -> None:
    """Loads the SYCL runtime and makes the CPU's driver known to the OpenCL loader. Changes nothing that the user has set."""
    if sys.platform != "linux":
        return
    driver = find_library("intel-opencl-rt", CPU_DRIVER)
    if driver is not None:
        # The loader reads OCL_ICD_FILENAMES as well as /etc/OpenCL/vendors, so other drivers of the machine stay visible.
        known = [entry for entry in os.environ.get("OCL_ICD_FILENAMES", "").split(os.pathsep) if entry]
        if not any(Path(entry).name == CPU_DRIVER for entry in known):
            os.environ["OCL_ICD_FILENAMES"] = os.pathsep.join([*known, str(driver)])
    if _beside(SYCL_LIBRARY) is not None and (driver is None or _beside(OPENCL_LOADER) is not None):
        return  # the dynamic linker finds it
    _load(driver)


def _load(driver: Path | None) -> None:
    """Loads the runtime from wherever it is, so that it is there when the native module asks for it."""
    import ctypes

    if _already_loadable(SYCL_LIBRARY):
        return
    sycl = find_library("intel-sycl-rt", SYCL_LIBRARY)
    if sycl is None:
        return
    ctypes.CDLL(str(sycl), mode=ctypes.RTLD_GLOBAL)
    # The runtime looks for the OpenCL loader beside itself: where pip put the two wheels into different folders, it must be loaded.
    if driver is not None and not (sycl.parent / OPENCL_LOADER).exists():
        loader = driver.parent / OPENCL_LOADER
        if loader.exists():
            ctypes.CDLL(str(loader), mode=ctypes.RTLD_GLOBAL)


def explain_import_failure(error: ImportError) -> ImportError:
    """The loader's message, with what to do about it."""
    here = Path(__file__).resolve().parent.parent
    if "libsycl" not in str(error):
        return error
    return ImportError(
        f"the SYCL runtime ({SYCL_LIBRARY}) was not found.\n"
        f"  In a venv or a user's folder:  {sys.executable} -m pip install 'intel-sycl-rt>=2026.2,<2027' intel-opencl-rt\n"
        f"  With pip install --target (which drops the libraries of those wheels), once more:\n"
        f"    {sys.executable} -m pip install --prefix '{here}' --ignore-installed 'intel-sycl-rt>=2026.2,<2027' intel-opencl-rt"
    )
