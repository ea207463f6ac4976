"""The tuner from outside: what it measures, proves, keeps, survives and shows."""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sycl_mat
from sycl_mat import _core, tune_report, tuning
from sycl_mat.cli import app
from sycl_mat.shapes import Shape

SIZE = 96
FEW = {"mr": [4, 6], "nv": [2, 4], "kc": [128, 512], "mc": [0], "nc": [1920, 3840], "pack": [0, 2]}
DATA = Path(__file__).resolve().parents[1] / "data"

pytestmark = pytest.mark.skipif(
    _core.current_device(None).type != "cpu", reason="the packed kernel, whose constants are tuned here, is the CPU's"
)


@pytest.fixture
def tuning_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "tuning.json"
    monkeypatch.setenv("SYCL_MAT_TUNING_FILE", str(file))
    monkeypatch.setenv("SYCL_MAT_DATA_DIR", str(tmp_path / "nothing"))
    time.sleep(0.6)  # the library looks at the environment and the file twice a second
    return file


def run_tuner(**options: object) -> tuning.TuneReport:
    settings: dict[str, object] = {"budget": 20, "kernels": ["packed"], "restrict": FEW, "most_evaluations": 6}
    return sycl_mat.tune([(SIZE, SIZE, SIZE)], **{**settings, **options})  # type: ignore[arg-type]


def reason() -> str:
    time.sleep(0.6)
    x = np.ones((SIZE, SIZE), "f4")
    return str(sycl_mat.explain(x, x, kernel="packed"))


def command(*arguments: str, file: Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SYCL_MAT_TUNING_FILE": str(file), "COLUMNS": "200", **environment}
    done = subprocess.run([sys.executable, "-m", "sycl_mat", *arguments], capture_output=True, text=True, env=env, timeout=300)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def test_finds_keeps_and_uses(tuning_file: Path) -> None:
    seen = []
    report = run_tuner(progress=seen.append)
    assert "your tuning file" in reason()
    (outcome,) = report.outcomes
    assert outcome.kernel == "packed"
    assert outcome.default_gflops > 0
    assert outcome.best_gflops > 0
    assert report.records == 1
    assert report.file == str(tuning_file)
    (group,) = report.groups
    assert 2 <= len(group.candidates) <= 6
    assert all(c.state == "measured" for c in group.candidates), [c.why for c in group.candidates]
    assert {state["phase"] for state in seen} == {"search", "final"}
    # The record says what it is of.
    (record,) = _core.read_tuning_file(str(tuning_file))["records"]
    assert record["fingerprint"] == _core.current_device(None).fingerprint
    assert record["shape"] == (SIZE, SIZE, SIZE, 1)
    assert record["driver"] == _core.current_device(None).driver_version
    match = _core.tuned_for(tuning.Problem(Shape(SIZE, SIZE, SIZE)).raw(), None, "")
    assert match["exact"]
    assert match["source"] == "user"
    # A product with it is right.
    a = np.arange(SIZE * SIZE, dtype="f4").reshape(SIZE, SIZE) % 7
    assert np.array_equal(sycl_mat.matmul(a, a, kernel="packed"), a @ a)


def test_kernels_take_their_turns_and_the_fastest_is_used(tuning_file: Path) -> None:
    report = run_tuner(kernels=None, most_evaluations=2, restrict=None, budget=10)
    outcomes = {o.kernel: o for o in report.outcomes}
    assert {"packed", "host"} <= set(outcomes)
    assert "tiled" not in outcomes, "on a processor it is there for want of better"
    ours = [o for o in outcomes.values() if o.fastest and o.kernel != "onemkl"]
    assert len(ours) == 1
    assert all(o.rule == "host" for o in outcomes.values()), "what is taken for 96³ without measurements"
    records = {r["kernel"]: r for r in _core.read_tuning_file(str(tuning_file))["records"]}
    assert set(records) == set(outcomes)
    assert records[ours[0].kernel]["fastest"] is True
    assert not any(r["other_kernel"] for r in records.values())
    time.sleep(0.6)
    x = np.ones((SIZE, SIZE), "f4")
    sycl_mat.matmul(x, x)
    assert _core.last_kernel() == ours[0].kernel


def test_what_was_tuned_for_vectors_is_found_by_vectors(tuning_file: Path) -> None:
    report = sycl_mat.tune([(700, 1, 90), (1, 700, 90)], budget=8, most_evaluations=1)
    assert report.records >= 4
    time.sleep(0.6)
    a = np.ones((700, 90), "f4")
    for x, y in ((a, np.ones(90, "f4")), (a, np.ones((90, 1), "f4")), (np.ones(90, "f4"), np.ascontiguousarray(a.T))):
        m, n = (1, 700) if x.ndim == 1 else (700, 1)
        (fastest,) = (
            o.kernel for o in report.outcomes if o.problem.shape.m == m and o.problem.shape.n == n and o.fastest and o.kernel != "onemkl"
        )
        sycl_mat.matmul(x, y)
        assert _core.last_kernel() == fastest


def forged(file: Path, kernel: str, **changes: object) -> None:
    """A record that says this kernel is by far the fastest at 96³, and instead of which."""
    device = _core.current_device(None)
    record = {
        "fingerprint": device.fingerprint,
        "kernel": kernel,
        "dtype": "float32",
        "layout": "nn",
        "class": "m13 n13 k13 b0",
        "shape": [SIZE, SIZE, SIZE, 1],
        "params": {"family": "none"},
        "reach": 0.75,
        "gflops": 1e6,
        "default_gflops": 1.0,
        "spread": 0.0,
        "measured": "2026-11-30T10:00:00Z",
        "architecture": device.architecture,
        "device": device.name,
        "driver": device.driver_version,
        "library": "0.1.0",
        "fastest": True,
        **changes,
    }
    file.write_text(json.dumps({"format": "sycl_mat tuning", "version": 1, "records": [record]}))
    time.sleep(0.6)


def test_a_record_moves_a_product_off_the_host_path_and_back(tuning_file: Path) -> None:
    x = np.ones((SIZE, SIZE), "f4")
    sycl_mat.matmul(x, x)
    assert _core.last_kernel() == "host"
    forged(tuning_file, "packed", instead_of="host", source="of another version")
    sycl_mat.matmul(x, x)
    assert _core.last_kernel() == "packed"
    text = str(sycl_mat.explain(x, x))
    assert "faster than host" in text
    assert "another version of the kernel: tune again" in text
    listed = command("tuned", "list", file=tuning_file).stdout
    assert "another version of the kernel" in listed
    assert "packed (not host)" in listed
    tuning_file.unlink()
    time.sleep(0.6)
    sycl_mat.matmul(x, x)
    assert _core.last_kernel() == "host"


def test_backend_auto_asks_the_records(tuning_file: Path) -> None:
    x = np.ones((SIZE, SIZE), "f4")
    try:
        sycl_mat.matmul(x, x, backend="onemkl")
    except sycl_mat.UnsupportedError:
        pytest.skip("oneMKL is not installed")
    sycl_mat.matmul(x, x, backend="auto")
    assert _core.last_kernel() == "host"
    forged(tuning_file, "onemkl", instead_of="host")
    sycl_mat.matmul(x, x, backend="auto")
    assert _core.last_kernel() == "onemkl"
    sycl_mat.matmul(x, x)
    assert _core.last_kernel() == "host", "the backend is ours unless the caller leaves it open"
    forged(tuning_file, "onemkl", fastest=False)
    sycl_mat.matmul(x, x, backend="auto")
    assert _core.last_kernel() == "host"


def test_untuned_contenders_are_what_would_run_without_records(tuning_file: Path) -> None:
    from sycl_mat import peers

    forged(tuning_file, "packed", instead_of="host")
    x = np.ones((SIZE, SIZE), "f4")
    peers.untuned(None, "defaults", shipped=False).run(x, x, np.empty_like(x))
    assert _core.last_kernel() == "host"


def test_dry_run_writes_nothing(tuning_file: Path) -> None:
    report = run_tuner(write=False, most_evaluations=2)
    assert report.file == ""
    assert not tuning_file.exists()


def test_never_tries_again_what_was_wrong_or_deadly(tuning_file: Path) -> None:
    run_tuner(most_evaluations=3)
    journal = Path(_core.tuning_journal())
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    key = lines[0]["key"]
    ended = [line for line in lines if line.get("state") == "measured"]
    assert ended
    assert all(line["seconds"] for line in ended)
    wrong = {**FEW, "mr": [4], "nv": [2], "kc": [128], "nc": [1920], "pack": [2]}
    deadly = {**wrong, "pack": [0]}

    def one(choice: dict[str, list[int]]) -> dict[str, object]:
        return {"family": "pack", **{name: values[0] for name, values in choice.items()}}

    with journal.open("a") as file:
        file.write(json.dumps({"key": key, "params": one(wrong), "state": "wrong result", "why": "row 3"}) + "\n")
        file.write(json.dumps({"key": key, "params": one(deadly), "begin": True}) + "\n")
        file.write(json.dumps({"key": key, "params": one(deadly), "begin": True}) + "\n")
        file.write("torn line {\n")
    report = run_tuner(restrict={**wrong, "pack": [0, 2]}, most_evaluations=20, budget=15)
    states = {(c.constants["pack"], c.constants["mr"]): c.state for g in report.groups for c in g.candidates if c.constants["mr"] == 4}
    assert states == {(2, 4): "wrong result", (0, 4): "crashed"}
    assert all(c.seconds == [None] for g in report.groups for c in g.candidates if c.state != "measured")


def test_a_single_death_is_forgiven(tuning_file: Path) -> None:
    run_tuner(most_evaluations=1)
    journal = Path(_core.tuning_journal())
    key = json.loads(journal.read_text().splitlines()[0])["key"]
    only = {"mr": [4], "nv": [2], "kc": [128], "mc": [0], "nc": [1920], "pack": [2]}
    with journal.open("a") as file:
        file.write(json.dumps({"key": key, "params": {"family": "pack", **{n: v[0] for n, v in only.items()}}, "begin": True}) + "\n")
    report = run_tuner(restrict=only, most_evaluations=5)
    assert [c.state for g in report.groups for c in g.candidates if c.constants["mr"] == 4] == ["measured"]


def test_ctrl_c_keeps_what_was_found(tuning_file: Path) -> None:
    program = (
        "import sycl_mat, sys\n"
        "def show(p): print(p['evaluations'], flush=True)\n"
        f"r = sycl_mat.tune([({SIZE}, {SIZE}, {SIZE})], budget=200, kernels=['packed'], progress=show)\n"
        "print('interrupted', r.interrupted, r.records, r.seconds < 100)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= 2:
            break
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    assert "interrupted True 1 True" in rest
    assert len(_core.read_tuning_file(str(tuning_file))["records"]) == 1


def test_a_search_that_dies_goes_on(tuning_file: Path, tmp_path: Path) -> None:
    # A child that is killed while it tunes is started again by the command, and ends in its own time.
    env = {**os.environ, "SYCL_MAT_TUNING_FILE": str(tuning_file)}
    arguments = [sys.executable, "-m", "sycl_mat", "tune", "--budget", "25", "--sizes", str(SIZE), "--kernel", "packed", "--no-compare"]
    parent = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=env)
    journal = Path(_core.tuning_journal())
    for _ in range(600):
        if journal.exists() and "measured" in journal.read_text():
            break
        time.sleep(0.1)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent.pid)], capture_output=True, text=True).stdout.split()
    assert len(children) == 1
    os.kill(int(children[0]), signal.SIGSEGV)
    output, _ = parent.communicate(timeout=120)
    assert parent.returncode == 0
    assert "the search goes on" in output
    assert "1 records written" in output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0}, "budget"),
        ({"strategy": "genetic"}, "guided, exhaustive"),
        ({"restrict": {"tile_m": [4]}}, "tile_m"),
        ({"kernels": ["quick"]}, "quick"),
        ({"kernels": ["tf32x3"]}, "no kernel"),
    ],
)
def test_senseless_options_are_named(options: dict[str, object], words: str, tuning_file: Path) -> None:
    with pytest.raises((sycl_mat.InputError, sycl_mat.UnsupportedError), match=words):
        run_tuner(**options)


def test_a_corrupt_file_costs_a_warning_only(tuning_file: Path) -> None:
    tuning_file.write_text("{ not json")
    program = "import numpy as np, sycl_mat; x = np.ones((96, 96), 'f4'); assert (sycl_mat.matmul(x, x, kernel='packed') == 96).all()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(tuning_file) in done.stderr


def test_try_shows_costs_and_refuses_broken_constants(tmp_path: Path) -> None:
    done = command("try", "--tile", "16,16,8", "--batch", "8,4", "--chunk", "8", "--sizes", "128", file=tmp_path / "none.json")
    for words in ("local memory", "chunks a work-item", "idle", "registers", "present choice", "yes"):
        assert words in done.stdout
    done = command("try", "--tile", "16,16,9", "--chunk", "4", "--sizes", "128", file=tmp_path / "none.json", check=False)
    assert done.returncode == 1
    assert "no multiple of chunk" in done.stdout.replace("\n", " ")


def test_list_export_import_clear(tuning_file: Path, tmp_path: Path) -> None:
    run_tuner(most_evaluations=2)
    assert "packed" in command("tuned", "list", file=tuning_file).stdout
    exported = tmp_path / "exported.json"
    assert "1 records" in command("tuned", "export", str(exported), file=tuning_file).stdout
    refused = command("tuned", "export", str(exported / "x"), file=tuning_file, check=False, COLUMNS="400")
    assert refused.returncode == 2
    assert f"cannot be written: {exported} is no folder" in refused.stderr
    other_file = command("tune-report", str(exported), file=tuning_file, check=False, COLUMNS="400")
    assert "holds no measurements of a run" in other_file.stderr
    other = tmp_path / "other.json"
    assert "1 of 1 records are new" in command("tuned", "import", str(exported), file=other).stdout
    assert "0 of 1 records are new" in command("tuned", "import", str(exported), file=other).stdout
    assert json.loads(other.read_text()) == json.loads(exported.read_text())
    assert "1 records removed" in command("tuned", "clear", "--yes", file=other).stdout
    assert json.loads(other.read_text())["records"] == []


def test_a_tuning_file_that_cannot_be_written_is_told_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    target = tmp_path / "file" / "tuning.json"
    begin = time.monotonic()
    done = command("tune", "--sizes", "96", "--budget", "60", file=target, check=False)
    assert done.returncode == 1
    assert time.monotonic() - begin < 20, "the budget was spent"
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"the tuning file {target} cannot be written ({tmp_path / 'file'} is no folder); "
        "set SYCL_MAT_TUNING_FILE or XDG_CONFIG_HOME to a writable place"
    ]
    with pytest.raises(sycl_mat.Error, match="no ordinary file; give another file"):
        run_tuner(file=tmp_path)


def test_what_was_found_survives_a_tuning_file_that_fails_at_the_end(
    tuning_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "folder" / "tuning.json"
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))

    def spoil(_: object) -> None:
        if target.parent.is_dir():
            target.parent.rmdir()
            target.parent.write_text("in the way")

    with pytest.raises(tuning.NotWrittenError, match="sycl-mat tuned import") as caught:
        run_tuner(file=target, most_evaluations=1, budget=5, progress=spoil)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    (outcome,) = again.report.outcomes
    assert outcome.best_gflops > 0
    (record,) = _core.read_tuning_file(again.report.file)["records"]
    assert record["kernel"] == "packed"

    # The command prints the table all the same.
    def fail(*_: str) -> None:
        raise sycl_mat.Error("cannot replace the file")

    monkeypatch.setattr(_core, "merge_tuning_file", fail)
    monkeypatch.setenv("SYCL_MAT_TUNE_WORKER", "3")
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, ["tune", "--sizes", str(SIZE), "--kernel", "packed", "--most", "1", "--no-compare"])
    assert result.exit_code == 1
    assert "× defaults" in result.output
    assert result.output.splitlines()[-1].startswith("cannot replace the file; the records are in")


def test_a_search_leaves_nothing_in_the_temporary_folder(tuning_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    report = run_tuner(most_evaluations=1, budget=3)
    assert report.records == 1
    assert list(spare.iterdir()) == []


def test_records_of_others_cannot_write_on_the_terminal(tuning_file: Path) -> None:
    raw = "evil\x1b[31m\x07\r\u202e[bold]\nline"
    forged(tuning_file, "packed", instead_of="host", device=raw, driver=raw, measured=raw)
    listed = command("tuned", "list", file=tuning_file, COLUMNS="400").stdout
    assert r"evil\x1b[31m\x07\r\u202e[bold]\nline" in listed
    assert not any(c in listed for c in "\x1b\x07\r\u202e")
    shown = command("explain", str(SIZE), str(SIZE), str(SIZE), file=tuning_file).stdout
    assert "packed" in shown
    assert not any(c in shown for c in "\x1b\x07\r\u202e")


def test_a_trace_tells_what_a_program_multiplied(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    program = (
        "import numpy as np, sycl_mat\n"
        "a, b = np.ones((200, 300), 'f4'), np.ones((300, 100), 'f4')\n"
        "for i in range(5): sycl_mat.matmul(a, b)\n"
        "sycl_mat.matmul(b.T, a.T)\n"
        "sycl_mat.matmul(np.ones((0, 3), 'f4'), np.ones((3, 2), 'f4'))\n"
        "sycl_mat.matmul(np.ones((7, 150, 64), 'f8'), np.ones((7, 64, 150), 'f8'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "SYCL_MAT_TRACE": str(trace)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    problems = tuning.read_trace(trace)
    assert problems[0] == tuning.Problem(Shape(200, 100, 300))  # five of them are the most work
    assert tuning.Problem(Shape(150, 150, 64, batch=7), "float64") in problems
    assert tuning.Problem(Shape(100, 200, 300, "TT")) in problems
    assert len(problems) == 3
    counts = [json.loads(line)["count"] for line in trace.read_text().splitlines() if json.loads(line)["m"] == 200]
    assert counts == [1, 5]


def test_a_broken_trace_is_named(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"m": 3}\n')
    with pytest.raises(ValueError, match=r"trace\.jsonl, line 1"):
        tuning.read_trace(trace)
    trace.write_text('{"m": 3, "n": 3, "k": 3, "layout": "nn", "batch": 1, "dtype": "foo", "count": 1}\n')
    with pytest.raises(ValueError, match="line 1: dtype 'foo' is none of float32"):
        tuning.read_trace(trace)


def test_report_is_one_file_with_pictures(tuning_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = run_tuner()
    # As it is read again from JSON, so that the pictures can be drawn later.
    again = tuning.report_from_dict(json.loads(json.dumps(tuning.report_as_dict(report))))
    page = tmp_path / "tune.html"
    tune_report.write_html(again, page)
    text = page.read_text()
    assert text.count("data:image/png;base64,") == 2
    assert "http" not in text
    assert "<script" not in text
    written = tune_report.write_plots(report, tmp_path / "plots" / "tune.png")
    assert [path.name for path in written] == ["tune-1.png", "tune-2.png"]
    assert all(path.stat().st_size > 5000 for path in written)


def test_importance_finds_the_constant_that_matters() -> None:
    def candidate(mr: int, kc: int, seconds: float) -> tuning.Candidate:
        return tuning.Candidate(None, {"mr": mr, "kc": kc, "pack": 1}, "measured", "", [seconds], 0, 0, -1, -1)

    candidates = [candidate(mr, kc, 1 / mr * (1 + 0.01 * (kc > 128))) for mr in (1, 2, 4, 8) for kc in (128, 256, 512)]
    group = tuning.Group("packed", 12, [tuning.Problem(Shape(64, 64, 64))], candidates, [])
    ranked = dict(tune_report.importance(group, 0))
    assert ranked["mr"] > 0.6
    assert ranked["kc"] < 0.05
    assert "pack" not in ranked


@pytest.mark.parametrize("sweep", sorted(DATA.glob("sweep_*.json")), ids=lambda path: path.stem)
def test_replays_of_recorded_sweeps(sweep: Path, tmp_path: Path) -> None:
    best, costs = _core.replay(str(sweep), "exhaustive", 1, 1, 10**6, True)
    assert min(costs) == best
    assert len(costs) == len(json.loads(sweep.read_text())["points"])
    done = command("tuned", "replay", str(sweep), "--runs", "3", "--most", "60", file=tmp_path / "none.json")
    assert "guided" in done.stdout


def test_roofline_is_a_ceiling() -> None:
    device = _core.current_device(None)
    roof = _core.roofline(None, "float32")
    assert _core.fma_peak(device, "float32") > 1  # measured anew: beside something else that runs it may be any part of the first
    assert roof["peak_gflops"] > 1
    assert 0.1 < roof["read_gbs"] < 10000
    assert 1e-7 < roof["launch_seconds"] < 0.1
    large = _core.bound(tuning.Problem(Shape(4096, 4096, 4096)).raw(), None)
    assert large["limit"] == "multiply-add rate"
    assert large["gflops"] == pytest.approx(roof["peak_gflops"])
    thin = _core.bound(tuning.Problem(Shape(1, 8192, 16384)).raw(), None)
    assert thin["limit"] == "memory bandwidth"
    assert thin["intensity"] == pytest.approx(0.5, rel=0.01)
    tiny = _core.bound(tuning.Problem(Shape(2, 2, 2)).raw(), None)
    assert tiny["limit"] == "launch latency"
