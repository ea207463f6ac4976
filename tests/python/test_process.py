"""What a product does to the process around it: threads, fork, Ctrl-C, memory, environment."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sycl_mat
from oracle import assert_product


def run(code: str, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """The code in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_many_threads_at_once(random: np.random.Generator) -> None:
    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(10):
            m, n, k = (int(size) for size in random.integers(1, 200, 3))
            a, b = random.standard_normal((m, k)).astype(np.float32), random.standard_normal((k, n)).astype(np.float32)
            assert_product(sycl_mat.matmul(a, b), a, b)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))


def test_threads_from_the_first_call_on() -> None:
    done = run(
        """
        import numpy as np, sycl_mat
        from concurrent.futures import ThreadPoolExecutor
        a = np.ones((150, 150), "f4")
        with ThreadPoolExecutor(8) as pool:
            assert all((c == 150).all() for c in pool.map(lambda _: sycl_mat.matmul(a, a), range(16)))
        """
    )
    assert done.returncode == 0, done.stderr


def test_other_threads_run_meanwhile() -> None:
    a = np.ones((2000, 2000), np.float32)
    sycl_mat.matmul(a, a)
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        sycl_mat.matmul(a, a)
    stop.set()
    thread.join()
    assert ticks > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_after_fork_there_is_an_error_and_no_hang() -> None:
    done = run(
        """
        import os, sys, numpy as np, sycl_mat
        a = np.ones((200, 200), "f4")
        sycl_mat.matmul(a, a)
        child = os.fork()
        if child == 0:
            try:
                sycl_mat.matmul(a, a)
            except sycl_mat.DeviceError as error:
                print(error, flush=True)
                os._exit(7)
            os._exit(8)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert (sycl_mat.matmul(a, a) == 200).all()
        """,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fork" in done.stdout


def test_fork_before_the_first_product_is_fine() -> None:
    done = run(
        """
        import os, numpy as np, sycl_mat
        a = np.ones((200, 200), "f4")
        child = os.fork()
        assert (sycl_mat.matmul(a, a) == 200).all()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_is_not_swallowed() -> None:
    code = textwrap.dedent(
        """
        import numpy as np, sycl_mat
        a = np.ones((1500, 1500), "f4")
        sycl_mat.matmul(a, a)
        print("ready", flush=True)
        try:
            while True:
                sycl_mat.matmul(a, a)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(30) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS")
def test_out_of_memory_is_a_memory_error_and_nothing_leaks() -> None:
    done = run(
        """
        import resource, numpy as np, sycl_mat
        a = np.ones((300, 300), "f4")
        sycl_mat.matmul(a, a)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), hard))
        tall, wide = np.ones((12000, 3), "f4"), np.ones((3, 12000), "f4")
        for _ in range(20):  # 576 MB each
            try:
                sycl_mat.matmul(tall, wide)
            except MemoryError:
                continue
            raise SystemExit("no MemoryError")
        assert (sycl_mat.matmul(a, a) == 300).all()
        """
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_does_not_grow(random: np.random.Generator) -> None:
    resource = pytest.importorskip("resource")
    a, b = random.random((300, 300), np.float32), random.random((600, 600), np.float32)[::2, ::2]

    def work() -> None:
        for _ in range(200):
            sycl_mat.matmul(a, b)
            sycl_mat.gemm(a, b, a, beta=1, bias=a[0])

    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes; one leaked result a call would be 200 MB


def test_references_are_not_lost(random: np.random.Generator) -> None:
    a = random.random((20, 20), np.float32)
    out = np.zeros((20, 20), np.float32)
    before = sys.getrefcount(a), sys.getrefcount(out), sys.getrefcount(np.dtype(np.float32))
    for _ in range(1000):
        sycl_mat.matmul(a, a, out=out)
        sycl_mat.matmul(a, a)
    after = sys.getrefcount(a), sys.getrefcount(out), sys.getrefcount(np.dtype(np.float32))
    assert all(abs(x - y) < 10 for x, y in zip(before, after, strict=True))


def test_the_environment_variable_for_devices_is_honoured() -> None:
    done = run("import sycl_mat; print(len(sycl_mat.devices()))", ONEAPI_DEVICE_SELECTOR="level_zero:31")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_without_a_device_the_error_says_what_to_do() -> None:
    done = run("import numpy as np, sycl_mat; a = np.ones((99, 99), 'f4'); sycl_mat.matmul(a, a)", ONEAPI_DEVICE_SELECTOR="level_zero:31")
    assert "DeviceError" in done.stderr
    assert "sycl-mat doctor" in done.stderr or "pip install" in done.stderr


@pytest.mark.parametrize("trouble", ["corrupt", "read-only", "a file"])
def test_a_bad_cache_folder_costs_time_only(trouble: str, tmp_path: "os.PathLike[str]") -> None:
    folder = os.path.join(tmp_path, "cache")
    code = "import numpy as np, sycl_mat; a = np.ones((99, 99), 'f4'); assert (sycl_mat.matmul(a, a, kernel='tiled') == 99).all()"
    assert run(code, SYCL_MAT_CACHE_DIR=folder).returncode == 0
    files = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
    assert files
    if trouble == "corrupt":
        for file in files:
            with open(file, "r+b") as stream:
                stream.seek(os.path.getsize(file) // 2)
                stream.write(b"nonsense")
                stream.truncate()
    elif trouble == "read-only":
        os.chmod(folder, 0o500)
    else:
        folder = os.path.join(tmp_path, "file")
        with open(folder, "w") as stream:
            stream.write("not a folder")
    done = run(code, SYCL_MAT_CACHE_DIR=folder)
    assert done.returncode == 0, done.stderr


def test_daemon_threads_do_not_abort_the_exit() -> None:
    done = run(
        """
        import threading, time
        import numpy as np, sycl_mat
        a = np.ones((400, 400), "f4")
        def forever():
            while True:
                sycl_mat.matmul(a, a)
                sycl_mat.gemm(a, a, alpha=2.0)
        for _ in range(3):
            threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.5)
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_an_event_of_the_parent_is_an_error_in_the_child() -> None:
    done = run(
        """
        import os
        import numpy as np, sycl_mat
        a = np.ones((1500, 1500), "f4")
        event = sycl_mat.gemm(a, a, wait=False)
        child = os.fork()
        if child == 0:
            try:
                event.wait()
                os._exit(0)  # it had finished before the fork
            except sycl_mat.DeviceError as error:
                os._exit(0 if "fork" in str(error) else 2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        event.wait()
        """,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
