"""Finding the runtime's libraries wherever pip put them."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sycl_mat import _runtime


def install(site: Path, name: str, library: Path, recorded: str) -> None:
    """A wheel's traces: its record in `site`, its library where pip really put it."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{recorded},,\n")
    library.parent.mkdir(parents=True, exist_ok=True)
    library.touch()


def test_by_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    install(site, "some-rt", tmp_path / "lib" / "libsome.so.9", "../../libsome.so.9")
    monkeypatch.setattr(sys, "path", [str(site)])
    assert _runtime.find_library("some-rt", "libsome.so.9") == tmp_path / "lib" / "libsome.so.9"


def test_a_record_that_lies_is_not_the_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, site = tmp_path / "target", tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    install(target, "some-rt", tmp_path / "elsewhere", "../libsome.so.9")
    install(site, "some-rt", tmp_path / "venv" / "lib" / "libsome.so.9", "../../libsome.so.9")
    monkeypatch.setattr(sys, "path", [str(target), str(site)])
    assert _runtime.find_library("some-rt", "libsome.so.9") == tmp_path / "venv" / "lib" / "libsome.so.9"


def test_by_prefix_where_there_is_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "_prefixes", lambda: iter([tmp_path / "no", tmp_path / "yes"]))
    (tmp_path / "yes" / "lib").mkdir(parents=True)
    (tmp_path / "yes" / "lib" / "libsome.so.9").touch()
    assert _runtime.find_library("not-installed", "libsome.so.9") == tmp_path / "yes" / "lib" / "libsome.so.9"
    assert _runtime.find_library("not-installed", "libother.so") is None


def test_other_drivers_stay_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = _runtime.find_library("intel-opencl-rt", _runtime.CPU_DRIVER)
    if driver is None:
        pytest.skip("no CPU driver here")
    monkeypatch.setenv("OCL_ICD_FILENAMES", "/somewhere/libgpu.so")
    _runtime.prepare()
    assert os.environ["OCL_ICD_FILENAMES"] == f"/somewhere/libgpu.so:{driver}"
    _runtime.prepare()
    assert os.environ["OCL_ICD_FILENAMES"] == f"/somewhere/libgpu.so:{driver}"


def test_a_users_own_cpu_driver_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCL_ICD_FILENAMES", "/opt/intel/libintelocl.so")
    _runtime.prepare()
    assert os.environ["OCL_ICD_FILENAMES"] == "/opt/intel/libintelocl.so"


def test_a_missing_runtime_is_explained() -> None:
    error = _runtime.explain_import_failure(ImportError("libsycl.so.9: cannot open shared object file"))
    assert "pip install" in str(error)
    assert "--prefix" in str(error)
    other = ImportError("something else")
    assert _runtime.explain_import_failure(other) is other


def test_the_pinned_runtime_is_installed_once() -> None:
    assert len({distribution.version for distribution in importlib.metadata.distributions(name="intel-sycl-rt")}) == 1


def test_missing_numpy_is_named() -> None:
    code = "import sys; sys.modules['numpy'] = None; import sycl_mat"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "numpy" in done.stderr.splitlines()[-1]
