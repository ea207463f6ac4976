"""The benchmark's own arithmetic: it must notice a wrong result."""

from pathlib import Path

import numpy as np
import pytest

from sycl_mat import bench, peers
from sycl_mat.shapes import Shape, read_shapes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8"])
def test_a_right_result_is_within_the_bound_and_a_wrong_one_is_not(dtype: str) -> None:
    a, b = bench.operands(Shape(30, 40, 50, "TN"), dtype)
    out = np.dtype(np.int32) if dtype == "int8" else a.dtype
    reference = bench.Reference(a, b, out)
    right = reference.value.astype(out)
    assert reference.error(right) <= 1
    wrong = right.copy()
    wrong[29, 39] += wrong[29, 39] / 16 + 1
    assert reference.error(wrong) > 1
    if dtype != "int8":
        wrong[29, 39] = np.nan
        assert reference.error(wrong) == np.inf


def test_an_error_in_a_row_that_is_not_sampled_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "WHOLE_REFERENCE_FLOPS", 0)
    monkeypatch.setattr(bench, "SAMPLED_ROWS", 4)
    a, b = bench.operands(Shape(100, 20, 30), "float32")
    reference = bench.Reference(a, b, a.dtype)
    assert reference.rows is not None
    right = (a.astype(float) @ b).astype(np.float32)
    assert reference.error(right) <= 1
    for row in range(100):
        wrong = right.copy()
        wrong[row, 7] += 0.1
        assert reference.error(wrong) > 1


def test_a_contender_that_computes_nonsense_is_shown_as_wrong() -> None:
    def nonsense(a: object, b: object, out: np.ndarray) -> None:  # type: ignore[type-arg]
        out[...] = 1

    row = bench.measure(
        Shape(20, 20, 20), "float32", [peers.numpy_contender(), peers.Contender("nonsense", nonsense)], rounds=1, seconds=0.001
    )
    assert [result.verified for result in row.results] == [True, False]


def test_the_peers_agree() -> None:
    contenders = [peers.numpy_contender(), peers.ours()]
    onemkl = peers.onemkl_contender()
    if onemkl:
        contenders.append(onemkl)
    for dtype in ("float32", "float64"):
        for layout in ("NN", "NT", "TN", "TT"):
            row = bench.measure(Shape(33, 44, 55, layout), dtype, contenders, rounds=1, seconds=0.001)
            assert all(result.verified for result in row.results), layout
            assert row.ratio("sycl_mat")


def test_shapes_file() -> None:
    shapes = read_shapes(ROOT / "bench" / "shapes.toml")
    assert len(shapes) == len(set(shapes)) > 60
    assert Shape(12800, 32, 90, group="network") in shapes
    assert Shape(256, 256, 256, "TT", group="layout") in shapes
    assert {shape.batch for shape in shapes} == {1, 10000}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[[group]]\nshapes=[[1,2,0]]",
        "[[group]]\nshapes=[[1,2,3]]\nlayouts=['XY']",
        "[[group]]\nshapes=[[1,2,3]]\ndtypes=['foo']",
        "[[group]]\nshape=[[1,2,3]]",
        "[[group]]\nshapes=[7]",
    ],
)
def test_bad_shapes_files_name_the_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "shapes.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"shapes\.toml"):
        read_shapes(path)


@pytest.mark.parametrize("name", ["float32", " Float64", "BFLOAT16"])
def test_element_types_have_names_in_any_case(name: str) -> None:
    assert bench.dtype_from_name(name).name == name.strip().lower()


@pytest.mark.parametrize("name", ["foo", "f4", "int32", "object", ""])
def test_other_element_types_are_refused_with_a_list(name: str) -> None:
    with pytest.raises(ValueError, match="is none of float32, float64, float16, bfloat16, int8"):
        bench.dtype_from_name(name)


@pytest.mark.parametrize(("peak", "kept"), [(1e9, True), (1e-9, False)])
def test_a_peak_below_what_a_product_reached_is_left_out(
    peak: float, kept: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sycl_mat import _core, cli_bench

    monkeypatch.setattr(cli_bench, "_peak", lambda device, dtype: peak)
    row = bench.measure(Shape(64, 64, 64), "float32", [peers.numpy_contender()], rounds=1, seconds=0.01, interleave=False)
    assert cli_bench._undisturbed(peak, _core.current_device("cpu"), "float32", [row]) == (peak if kept else None)
    assert ("too busy" in capsys.readouterr().out) != kept


def test_long_products_are_compared_with_multiply_adds_that_take_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def peak(flops: float) -> float:
        asked.append(flops)
        return 100.0 + len(asked)  # GFLOP/s

    def row(seconds: float) -> bench.Row:
        monkeypatch.setattr(bench, "LONG", seconds)
        return bench.measure(Shape(64, 64, 64), "float32", [peers.ours()], rounds=2, seconds=0.002, interleave=False, peak=peak)

    short = row(1e9)
    assert not asked
    assert short.peak is None
    assert short.peak_gflops(7.0) == 7.0
    long = row(0.0)
    assert len(asked) >= 2
    assert set(asked) == {2.0 * 64**3}
    assert long.peak_gflops(7.0) == pytest.approx(100.0 + len(asked))
    assert long.as_dict()["peak_gflops"] == pytest.approx(100.0 + len(asked))


def test_rounds_go_on_while_somebody_becomes_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[int] = []

    def timed(samples: list[float]) -> list[float]:
        def time(run: object, seconds: float, number: int, most: int = 10_000) -> list[float]:
            blocks.append(number)
            return [samples[min(len(blocks), len(samples)) - 1]]

        monkeypatch.setattr(bench, "_time", time)
        blocks.clear()
        return bench.measure(Shape(4, 4, 4), "float32", [peers.ours()], rounds=2, seconds=0.001, interleave=False).results[0].quiet.samples

    assert timed([1.0, 1.0, 0.1]) == [1.0, 1.0]
    assert timed([1.0, 0.9, 0.8, 0.79, 0.1]) == [1.0, 0.9, 0.8, 0.79]
    assert len(timed([1.0 / 2**x for x in range(20)])) == bench.MOST_ROUNDS * 2


def test_the_rate_of_multiply_adds_over_a_given_work() -> None:
    from sycl_mat import _core

    for dtype in ("float32", "float64"):
        rates = [_core.fma_peak("cpu", dtype, flops) for flops in (1e3, 1e9)]
        assert all(rate > 0 for rate in rates)
        assert rates[1] < 1e5  # a processor that skipped the work would seem to be faster


def test_longer_multiply_adds_count_for_shorter_ones() -> None:
    def row(n: int, seconds: float, dtype: str = "float32") -> bench.Row:
        return bench.Row(Shape(n, n, n), dtype, [], {}, bench.Timing([seconds]))

    rows = [row(1000, 0.02), row(2000, 0.08), row(3000, 2.0), row(100, 0.001, "float64")]  # 100, 200, 27, 2 GFLOP/s
    bench.settle_peaks(rows)
    assert rows[0].peak_gflops(None) == pytest.approx(200)  # a longer one did better: it was unlucky
    assert rows[1].peak_gflops(None) == pytest.approx(200)
    assert rows[2].peak_gflops(500.0) == pytest.approx(27)  # longer than the slices that reached 500
    assert rows[3].peak_gflops(500.0) == pytest.approx(500)  # shorter than those


def test_a_product_faster_than_multiply_adds_has_no_share_of_them() -> None:
    row = bench.measure(Shape(64, 64, 64), "float32", [peers.ours()], rounds=1, seconds=0.001, interleave=False)
    mine = row.results[0].gflops
    assert row.share_of_peak("sycl_mat", 2 * mine) == pytest.approx(0.5)
    assert row.share_of_peak("sycl_mat", mine / 2) is None
    assert row.share_of_peak("sycl_mat", None) is None
    assert row.share_of_peak("nobody", mine) is None


def test_nobody_able_is_a_row_without_results() -> None:
    def unable(a: object, b: object, out: object) -> None:
        raise ValueError("not here")

    row = bench.measure(Shape(8, 8, 8), "float32", [peers.Contender("unable", unable)], rounds=1, seconds=0.001)
    assert row.results == []
    assert row.skipped == {"unable": "not here"}
