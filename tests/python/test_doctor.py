"""sycl-mat doctor on machines that are not this one."""

import os
from pathlib import Path

import pytest

from sycl_mat import doctor


@pytest.fixture
def machine(tmp_path: Path) -> doctor.Machine:
    """A machine with an Intel GPU and no driver at all."""
    gpu = tmp_path / "pci" / "0000:00:02.0"
    gpu.mkdir(parents=True)
    (gpu / "class").write_text("0x030000\n")
    (gpu / "vendor").write_text("0x8086\n")
    (tmp_path / "vendors").mkdir()
    return doctor.Machine(
        vendors=tmp_path / "vendors", render_nodes=tmp_path / "dri", pci_devices=tmp_path / "pci", nvidia_driver=tmp_path / "nvidia"
    )


def problems(machine: doctor.Machine) -> str:
    findings = [finding for finding in doctor.examine(machine) if finding.verdict != "ok"]
    assert all(finding.mend for finding in findings if finding.verdict == "problem")
    return "\n".join(f"{finding.what} → {finding.mend}" for finding in findings)


def test_no_icd_and_no_render_node(machine: doctor.Machine) -> None:
    text = problems(machine)
    assert "no system OpenCL driver is registered" in text
    assert "renderD*" in text
    assert "apt install intel-opencl-icd" in text


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may use every device node")
def test_no_permission(machine: doctor.Machine) -> None:
    machine.render_nodes.mkdir()
    node = machine.render_nodes / "renderD128"
    node.touch(mode=0)
    assert "usermod -aG render" in problems(machine)


def test_permission_is_asked_of_the_system(machine: doctor.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.render_nodes.mkdir()
    (machine.render_nodes / "renderD128").touch()
    assert "usermod" not in problems(machine)
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: "renderD" not in str(path))
    assert "usermod -aG render" in problems(machine)


def test_level_zero_loader(machine: doctor.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_loads", lambda *names: False)
    assert "no Level Zero loader" in problems(machine)


def test_broken_icds(machine: doctor.Machine) -> None:
    (machine.vendors / "broken.icd").write_text("/nowhere/libnothing.so\n")
    (machine.vendors / "empty.icd").write_text("")
    text = problems(machine)
    assert "/nowhere/libnothing.so" in text
    assert "empty.icd is empty" in text


def test_nvidia_without_adapter(machine: doctor.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "NVIDIA" not in problems(machine)
    machine.nvidia_driver.mkdir()
    monkeypatch.setattr(doctor, "_loads", lambda *names: False)
    monkeypatch.setattr(doctor._runtime, "find_library", lambda *names: None)
    assert "no CUDA adapter" in problems(machine)


def test_versions_that_do_not_fit(machine: doctor.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"intel-sycl-rt": "2027.0.1", "intel-cmplr-lib-ur": "2026.2.0", "intel-opencl-rt": "2025.1.0"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    text = problems(machine)
    assert "built for the SYCL runtime 2026" in text
    assert "intel-cmplr-lib-ur is 2026.2.0" in text
    assert "the CPU driver is 2025.1.0" in text


def test_no_processor_driver(machine: doctor.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor._runtime, "find_library", lambda *names: None)
    assert "pip install intel-opencl-rt" in problems(machine)


def test_no_device_at_all(machine: doctor.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor._core, "devices", list)
    assert "finds no device" in problems(machine)


def test_selector(machine: doctor.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEAPI_DEVICE_SELECTOR", "opencl:cpu")
    assert "ONEAPI_DEVICE_SELECTOR=opencl:cpu" in problems(machine)


def test_cache_folder(machine: doctor.Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(doctor, "cache_folder", lambda: file / "cache")
    assert "is a file" in problems(machine)
    monkeypatch.setattr(doctor, "cache_folder", lambda: tmp_path / "cache")
    assert "cache folder" not in problems(machine)
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    assert "SYCL_MAT_CACHE_DIR" in problems(machine)
