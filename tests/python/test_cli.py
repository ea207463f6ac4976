"""The command sycl-mat, as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sycl_mat
from sycl_mat.cli import app
from sycl_mat.cli_bench import check_output

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


def fault(*arguments: str) -> str:
    """What a refused command says, on one line; it must be refused as a usage error, not by an exception that got out."""
    result = runner.invoke(app, list(arguments), env={"COLUMNS": "400"})
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("layout", ["tn", "Tn", "TN"])
def test_explain_takes_layouts_in_any_case(layout: str) -> None:
    result = runner.invoke(app, ["explain", "300", "200", "100", "--kernel", "packed", "--layout", layout])
    assert result.exit_code == 0, result.output
    assert "TRANS_A=1" in result.output


@pytest.mark.parametrize("layout", ["zz", "N", "NTN", ""])
def test_explain_refuses_other_layouts(layout: str) -> None:
    assert f"layout '{layout}' is none of NN, NT, TN, TT" in fault("explain", "5", "5", "5", "--layout", layout)


@pytest.mark.parametrize("command", [("explain", "5", "5", "5"), ("bench", "--sizes", "64"), ("tune", "--sizes", "64", "--budget", "2")])
@pytest.mark.parametrize("dtype", ["foo", "complex64", ""])
def test_unknown_element_types_are_refused(command: tuple[str, ...], dtype: str) -> None:
    assert f"dtype '{dtype}' is none of float32, float64, float16, bfloat16, int8" in fault(*command, "--dtype", dtype)


@pytest.mark.parametrize("command", ["bench", "tune"])
@pytest.mark.parametrize("sizes", ["x", "96,4000x2x4000", "0", "64,"])
def test_sizes_say_their_form(command: str, sizes: str) -> None:
    assert f"not '{sizes}': --sizes 512,1024" in fault(command, "--sizes", sizes)


@pytest.mark.parametrize("option", ["bench --json", "bench --plot", "tune --json", "tune --plot", "tune --html", "tune --record-sweep"])
def test_places_that_cannot_be_written_are_told_before_the_run(option: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command, name = option.split()
    (tmp_path / "file").write_text("kept")
    place = tmp_path / "file" / "out.png"
    # Sizes that would take minutes: the answer comes at once.
    assert f"{place} cannot be written: {tmp_path / 'file'} is no folder" in fault(command, "--sizes", "16384", name, str(place))
    folder = tmp_path / "folder.png"
    folder.mkdir()
    assert f"{folder} cannot be written: Is a directory" in fault(command, "--sizes", "16384", name, str(folder))
    assert (tmp_path / "file").read_text() == "kept"


def test_looking_whether_a_file_can_be_written_leaves_it_alone(tmp_path: Path) -> None:
    new, old = tmp_path / "new" / "x.json", tmp_path / "old.json"
    old.write_text("kept")
    check_output(new)
    check_output(old)
    check_output(Path(os.devnull))
    assert not new.exists()
    assert new.parent.is_dir()
    assert old.read_text() == "kept"


@pytest.mark.parametrize("content", ["# Read me\n", "{}", "[]", "3", '{"format": "sycl_mat tuning", "version": 1, "records": []}'])
def test_a_report_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(content)
    said = fault("tune-report", str(file))
    assert "holds no measurements of a run" in said
    assert "sycl-mat tune --json FILE" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full here")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run([sys.executable, "-m", "sycl_mat", "kernels"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr == "the output cannot be written: No space left on device\n"


def test_a_reader_that_leaves_is_no_fault() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.executable, "-m", "sycl_mat", "kernels"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert run.returncode == 1
    assert run.stderr == ""
