"""The types that are shipped are those that the native module has."""

import difflib
import importlib.util
import sys
from pathlib import Path

import pytest

import sycl_mat

ROOT = Path(__file__).resolve().parents[2]
STUBS = ROOT / "python" / "sycl_mat" / "_core.pyi"


def test_stubs_are_current() -> None:
    pytest.importorskip("nanobind.stubgen")
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "tools" / "make_stubs.py")
    assert spec is not None
    assert spec.loader is not None
    make_stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_stubs)
    difference = difflib.unified_diff(STUBS.read_text().splitlines(), make_stubs.stubs().splitlines(), "shipped", "now", lineterm="")
    text = "\n".join(difference)
    assert not text, f"run tools/make_stubs.py:\n{text}"


def test_mypy_is_content_with_a_users_program(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(
        """
import numpy as np
import sycl_mat

a = np.ones((2, 2), np.float32)
c = sycl_mat.matmul(a, a, device="cpu", params=sycl_mat.TileParams(tile_m=8))
d = sycl_mat.gemm(a, a, bias=[1.0, 2.0], activation="relu")
for device in sycl_mat.devices():
    name: str = device.name
sycl_mat.matmul(a, a, nonsense=1)  # type: ignore[call-arg]
sycl_mat.gemm(a, a, activation="softmax")  # type: ignore[arg-type]
"""
    )
    output, errors, status = api.run(["--strict", "--python-executable", sys.executable, "--cache-dir", str(tmp_path), str(program)])
    assert status == 0, output + errors


def test_every_public_name_is_there_and_documented() -> None:
    for name in sycl_mat.__all__:
        assert getattr(sycl_mat, name) is not None
        if name != "__version__":
            assert getattr(sycl_mat, name).__doc__, name
