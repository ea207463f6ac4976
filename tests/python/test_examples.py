"""The examples run and do what they say."""

import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


def test_network_learns() -> None:
    spec = importlib.util.spec_from_file_location("network", EXAMPLES / "network.py")
    assert spec is not None
    assert spec.loader is not None
    network = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(network)
    assert network.main(steps=600) > 0.9
