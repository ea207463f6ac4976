"""The command sycl-mat, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sycl_mat
from sycl_mat.cli import app

runner = CliRunner()


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # bench would start the process anew
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")


def test_help_has_examples() -> None:
    for command in ("devices", "doctor", "kernels", "explain", "bench", "first-call"):
        result = runner.invoke(app, [command, "--help"])
        assert result.exit_code == 0, result.output
        assert "Example" in result.output


def test_devices() -> None:
    result = runner.invoke(app, ["devices"])
    assert result.exit_code == 0, result.output
    for device in sycl_mat.devices():
        assert device.selector in result.output
    result = runner.invoke(app, ["devices", "--all"])
    assert "max_work_group_size" in result.output


def test_kernels() -> None:
    result = runner.invoke(app, ["kernels"])
    for kernel in sycl_mat.kernels():
        assert kernel.name in result.output


def test_doctor() -> None:
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "SYCL runtime" in result.output


def test_explain() -> None:
    result = runner.invoke(app, ["explain", "1000", "900", "800", "--layout", "TN"])
    assert result.exit_code == 0, result.output
    assert "kernel" in result.output
    assert "TRANS_A=1" in result.output
    assert runner.invoke(app, ["explain", "10", "10", "10", "--kernel", "nonsense"]).exit_code == 1


def test_bench(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figures, picture = tmp_path / "bench.json", tmp_path / "pictures" / "bench.png"
    result = runner.invoke(
        app,
        ["bench", "--sizes", "32,100", "--seconds", "0.01", "--rounds", "2", "--json", str(figures), "--plot", str(picture)],
    )
    assert result.exit_code == 0, result.output
    assert "NumPy" in result.output
    assert "geometric mean" in result.output
    content = json.loads(figures.read_text())
    assert [row["n"] for row in content["rows"]] == [32, 100]
    for row in content["rows"]:
        names = {entry["contender"]: entry for entry in row["results"]}
        assert {"NumPy", "sycl_mat"} <= set(names)
        assert all(entry["verified"] and entry["gflops"] > 0 for entry in names.values())
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_bench_of_a_file_of_shapes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shapes, picture = tmp_path / "shapes.toml", tmp_path / "ratio.svg"
    shapes.write_text(
        '[[group]]\nname = "some"\nlayouts = ["NT", "TN"]\nshapes = [[10, 20, 30]]\n[[group]]\nbatch = 5\nshapes = [[4, 4, 4]]\n'
    )
    result = runner.invoke(
        app, ["bench", "--shapes", str(shapes), "--seconds", "0.01", "--no-blog", "--plot", str(picture), "--dtype", "float64"]
    )
    assert result.exit_code == 0, result.output
    assert "10×20×30 TN" in result.output
    assert "<svg" in picture.read_text()


def test_bench_refuses_nonsense(tmp_path: Path) -> None:
    assert runner.invoke(app, ["bench", "--sizes", "12,x"]).exit_code == 2
    bad = tmp_path / "bad.toml"
    bad.write_text("[[group]]\nshapes = [[1, 2]]\n")
    result = runner.invoke(app, ["bench", "--shapes", str(bad)])
    assert result.exit_code == 2


def test_first_call() -> None:
    result = runner.invoke(app, ["first-call", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "warm cache" in result.output


def test_faults_are_one_line() -> None:
    too_large = runner.invoke(app, ["explain", "99999999999", "99999999999", "99999999999"])
    assert too_large.exit_code == 2
    assert "do not fit into memory" in too_large.output
    assert runner.invoke(app, ["bench", "--sizes", "8", "--plot", "picture.xyz"]).exit_code == 2
    run = subprocess.run([sys.executable, "-m", "sycl_mat", "bench", "--device", "nope"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "there is no SYCL device" in run.stderr
    assert "Traceback" not in run.stderr
