"""The wheel in places where users put it: a fresh environment, a user's folder, a target folder; with and without a compiler's headers.

SYCL_MAT_WHEEL names the wheel to test; without it one is built here, once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ["intel-sycl-rt", "intel-opencl-rt", "numpy"]

pytestmark = [
    pytest.mark.install,
    pytest.mark.skipif(sys.platform != "linux", reason="written for Linux"),
]

CHECK = """
import numpy as np, sycl_mat
a = np.arange(90000, dtype="f4").reshape(300, 300) % 7
assert (sycl_mat.matmul(a, a) == a @ a).all()
assert (sycl_mat.matmul(a, a, kernel="packed") == a @ a).all()  # through the device, whatever the planner would take
assert (sycl_mat.matmul(a[:5, :6], a[:6, :4]) == a[:5, :6] @ a[:6, :4]).all()
print(sycl_mat.last_kernel(), sycl_mat.__file__)
"""

# Constants that no wheel ships: the kernel must be compiled here and now.
NEW_CONSTANTS = """
import numpy as np, sycl_mat
a = np.arange(10000, dtype="f4").reshape(100, 100) % 7
params = sycl_mat.TileParams(tile_m=8, tile_n=8, tile_k=12, batch_m=3, batch_n=4, chunk=4)
assert (sycl_mat.matmul(a, a, kernel="tiled", params=params) == a @ a).all()
assert (sycl_mat.matmul(a, a, kernel="packed", params=sycl_mat.PackParams(mr=5, nv=1)) == a @ a).all()
print("compiled")
"""


def environment(cache: Path, **more: str) -> dict[str, str]:
    """The caller's, without anything that would help the package find its libraries."""
    hidden = ("OCL_ICD", "PYTHON", "LD_", "SYCL_", "ONEAPI", "VIRTUAL_ENV", "CMPLR_ROOT")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return {**kept, "SYCL_MAT_CACHE_DIR": str(cache), **more}


def call(*command: str | Path, **options: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=1200, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "SYCL_MAT_WHEEL" in os.environ:
        return Path(os.environ["SYCL_MAT_WHEEL"]).resolve()
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Python of a new environment into which the wheel was installed as a user would."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    call(folder / "bin" / "pip", "install", "--quiet", wheel)
    yield folder / "bin" / "python"
    shutil.rmtree(folder)  # 1.6 GB


def test_a_fresh_environment(fresh: Path, tmp_path: Path) -> None:
    output = call(fresh, "-c", CHECK, env=environment(tmp_path), cwd=tmp_path)
    assert str(fresh.parents[1]) in output
    assert "opencl" in call(fresh.parent / "sycl-mat", "devices", env=environment(tmp_path), cwd=tmp_path)
    call(fresh.parent / "sycl-mat", "doctor", env=environment(tmp_path), cwd=tmp_path)
    call(fresh, "-m", "sycl_mat", "kernels", env=environment(tmp_path), cwd=tmp_path)


def test_the_wheel_holds_what_it_should(wheel: Path) -> None:
    import zipfile

    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("sycl_mat/__init__.py", "sycl_mat/py.typed", "sycl_mat/_core.pyi"):
        assert wanted in names
    assert any(name.startswith("sycl_mat/_core.") and name.endswith(".so") for name in names)
    assert any(name.startswith("sycl_mat/bundles/") for name in names), "no shipped object bundles"
    assert not any(name.endswith((".cpp", ".hpp", ".a")) for name in names)


def test_a_path_with_spaces_and_umlauts(fresh: Path, tmp_path: Path) -> None:
    cache = tmp_path / "Käse und Brot"
    call(fresh, "-c", CHECK, env=environment(cache), cwd=tmp_path)
    assert any(cache.rglob("*"))


def test_new_constants_compile_without_the_systems_headers(fresh: Path, tmp_path: Path) -> None:
    """In a mount namespace of its own, with nothing in the folders where a compiler keeps its headers."""
    hide = " && ".join(
        f"if [ -d {folder} ]; then mount -t tmpfs none {folder}; fi" for folder in ("/usr/include", "/usr/lib/gcc", "/usr/local/include")
    )
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*namespace, "sh", "-c", hide], capture_output=True, check=False).returncode != 0:
        pytest.skip("no mount namespaces here: headers cannot be hidden")
    script = f'{hide} && test -z "$(ls -A /usr/include)" && exec "$0" "$@"'
    output = call(*namespace, "sh", "-c", script, fresh, "-c", NEW_CONSTANTS, env=environment(tmp_path / "cache"), cwd=tmp_path)
    assert output == "compiled\n"


def test_a_target_folder(fresh: Path, wheel: Path, tmp_path: Path) -> None:
    """pip install --target drops the runtime's libraries: they are found elsewhere, or the error says how to get them."""
    target = tmp_path / "target"
    call(fresh, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, wheel)
    output = call(fresh, "-c", CHECK, env=environment(tmp_path / "cache", PYTHONPATH=str(target)), cwd=tmp_path)
    assert str(target) in output

    bare = tmp_path / "bare"
    venv.create(bare, with_pip=True)
    call(bare / "bin" / "pip", "install", "--quiet", "numpy")
    python = bare / "bin" / "python"
    failed = subprocess.run(
        [python, "-c", CHECK], env=environment(tmp_path / "cache", PYTHONPATH=str(target)), capture_output=True, text=True, check=False
    )
    assert failed.returncode != 0
    assert "ImportError: the SYCL runtime" in failed.stderr
    assert f"--prefix '{target}'" in failed.stderr
    # what that advice leads to: the libraries in the target folder's own lib
    (target / "lib").symlink_to(fresh.parents[1] / "lib")
    call(python, "-c", CHECK, env=environment(tmp_path / "cache", PYTHONPATH=str(target)), cwd=tmp_path)


def test_a_users_folder(wheel: Path, tmp_path: Path) -> None:
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not base.exists() or subprocess.run([base, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the base Python has no pip")
    there = environment(tmp_path / "cache", PYTHONUSERBASE=str(tmp_path / "user"))
    call(base, "-m", "pip", "install", "--quiet", "--user", "--break-system-packages", "--ignore-installed", wheel, env=there, cwd=tmp_path)
    output = call(base, "-c", CHECK, env=there, cwd=tmp_path)
    assert str(tmp_path / "user") in output
    shutil.rmtree(tmp_path / "user")


@pytest.mark.skipif("SYCL_MAT_SLOW_TESTS" not in os.environ, reason="builds everything once more; set SYCL_MAT_SLOW_TESTS")
def test_an_editable_installation(tmp_path: Path) -> None:
    folder = tmp_path / "editable"
    venv.create(folder, with_pip=True)
    call(folder / "bin" / "pip", "install", "--quiet", "--editable", ROOT)
    output = call(folder / "bin" / "python", "-c", CHECK, env=environment(tmp_path / "cache"), cwd=tmp_path)
    assert str(ROOT / "python") in output
