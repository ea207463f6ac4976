"""Settings of all Python tests: a cache of their own, repeatable random numbers."""

import os
from pathlib import Path

import pytest

_CACHE = Path(__file__).resolve().parents[2] / "build" / "test-cache" / "python"
os.environ.setdefault("SYCL_MAT_CACHE_DIR", str(_CACHE))

import numpy as np
from hypothesis import HealthCheck, settings

settings.register_profile("ours", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="session", autouse=True)
def _a_device() -> None:
    import sycl_mat

    assert sycl_mat.devices(), "no SYCL device: run `sycl-mat doctor`"
