#!/usr/bin/env python3
"""Compiles the GPU kernels' default constants for Intel GPUs with ocloc: no GPU is needed. Every architecture, dtype and layout.

    tools/intel_check.py --build build/release [--write docs/intel-registers.md]

Exit status 1 where a kernel spills registers or does not compile. Without ocloc (Debian: intel-opencl-icd) it says so and ends well.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

# The architecture's name in the library, ocloc's name of one of its devices, and what people call it.
TARGETS = {
    "intel-gen9": ("skl", "Gen9 (HD/UHD Graphics of Skylake to Comet Lake)"),
    "intel-xe-lp": ("tgllp", "Xe-LP (Iris Xe)"),
    "intel-xe-hpg": ("dg2", "Xe-HPG (Arc A)"),
    "intel-xe-hpc": ("pvc", "Xe-HPC (Data Center GPU Max)"),
}
PLAIN = {
    "tiled": ("TILE_M", "TILE_N", "TILE_K", "BATCH_M", "BATCH_N", "CHUNK"),
    "gemv": ("ITEMS", "ALONG_K", "CHUNK", "ROWS", "STEPS"),
}
OPTIONS = {
    "tiled": ("A_TRANSPOSED", "PAD", "STRIDED", "ORDER", "AHEAD", "LOCAL", "SUB_GROUP", "SPLIT", "SWIZZLE"),
    "gemv": ("FEW", "SPLIT", "SUB_GROUP"),
}


@dataclass(frozen=True)
class Program:
    """A line of `dump_spirv all`."""

    file: str
    kernel: str
    architecture: str
    dtype: str
    layout: str
    problem: str
    work_group: str
    local_memory: int
    constants: dict[str, int]


@dataclass
class Compiled:
    """What ocloc made of a program."""

    program: Program
    simd: int = 0
    registers: int = 0
    spills: int = 0
    local_memory: int = 0
    barriers: int = 0
    code_bytes: int = 0
    failure: str = ""
    layouts: list[str] = field(default_factory=list)


def parse_program(line: str) -> Program:
    file, kernel, architecture, dtype, layout, problem, work_group, local_memory, constants = line.rstrip("\n").split("\t")
    values = {name: int(value) for name, value in (pair.split("=") for pair in constants.split())}
    return Program(file, kernel, architecture, dtype, layout, problem, work_group, int(local_memory), values)


def sections(binary: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit little-endian ELF file by name."""
    (table,) = struct.unpack_from("<Q", binary, 0x28)
    size, count, names = struct.unpack_from("<HHH", binary, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", binary, table + i * size) for i in range(count)]
    texts = headers[names][4]
    result: dict[str, bytes] = {}
    for name, _, _, _, offset, length in headers:
        end = binary.index(b"\0", texts + name)
        result[binary[texts + name : end].decode()] = binary[offset : offset + length]
    return result


def compile_program(program: Program, folder: Path) -> Compiled:
    device = TARGETS[program.architecture][0]
    result = Compiled(program, layouts=[program.layout])
    output = f"{Path(program.file).stem}-{device}"
    command = ["ocloc", "compile", "-spirv_input", "-file", program.file, "-device", device]
    command += ["--format", "zebin", "-exclude_ir", "-output", output]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    text = ran.stdout + ran.stderr
    binaries = list(folder.glob(f"{output}_*.bin"))
    if ran.returncode != 0 or len(binaries) != 1:
        result.failure = text.strip() or f"ocloc ended with {ran.returncode}"
        return result
    parts = sections(binaries[0].read_bytes())
    info = parts[".ze_info"].decode(errors="replace")

    def number(name: str) -> int:
        found = re.search(rf"{name}:\s+(\d+)", info)
        return int(found[1]) if found else 0

    result.simd, result.registers = number("simd_size"), number("grf_count")
    result.local_memory, result.barriers = number("slm_size"), number("barrier_count")
    result.code_bytes = sum(len(code) for name, code in parts.items() if name.startswith(".text."))
    if spilled := re.search(r"spilled around (\d+)", text):
        result.spills = int(spilled[1])
    if "has_stack_calls" in info:
        result.failure = "a function was not inlined"
    return result


def table_row(result: Compiled) -> str:
    constants = result.program.constants
    kernel = result.program.kernel
    plain = ",".join(str(constants[name]) for name in PLAIN[kernel])
    options = " ".join(f"{name.lower()}={constants[name]}" for name in OPTIONS[kernel])
    state = result.failure.splitlines()[-1] if result.failure else str(result.spills)
    return (
        f"| {kernel} | {result.program.dtype} | {' '.join(result.layouts)} | {plain} | {options} | {result.simd} | {result.registers} | {state} "
        f"| {result.local_memory} | {result.barriers} | {result.code_bytes / 1024:.0f} |"
    )


def document(results: list[Compiled], version: str) -> str:
    lines = [
        "# What the GPU kernels take on Intel GPUs",
        "",
        "Made by `tools/intel_check.py`; CI fails where a line spills. The constants are what the planner takes where nothing was",
        "measured: of `tiled` for products of 256³, 1024³, 4096³ and 64×64×65536 (tile_m, tile_n, tile_k, batch_m, batch_n, chunk), of",
        "`gemv` for 1×4096×4096, 3×1000×65536 and 8×16384×4096 (work-items of a group, of a result, chunk, rows of a work-item,",
        "loads under way). SIMD: work-items an instruction serves. Registers: of 32 bytes",
        "(64 on Xe-HPC) a hardware thread. Spills: as the compiler reports them. Local memory in bytes a work-group. Layouts: A then B,",
        f"n row-major, t column-major; one line stands for all layouts that came out alike. Compiler: {version}.",
    ]
    for architecture, (device, title) in TARGETS.items():
        lines += ["", f"## {title}: `{architecture}`, compiled for `{device}`", ""]
        lines += ["| kernel | dtype | layouts | constants | options | SIMD | registers | spills | local memory | barriers | code KiB |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
        rows: dict[tuple[object, ...], Compiled] = {}
        for result in results:
            program = result.program
            if program.architecture != architecture:
                continue
            chosen = tuple(program.constants[name] for name in PLAIN[program.kernel] + OPTIONS[program.kernel])
            key = (program.kernel, program.dtype, chosen, result.simd, result.spills, result.local_memory, result.failure)
            if key in rows:
                rows[key].layouts += result.layouts
            else:
                rows[key] = result
        lines += [table_row(result) for result in rows.values()]
    return "\n".join(lines) + "\n"


def environment() -> dict[str, str]:
    """The environment in which the CPU's OpenCL driver is found: the front end needs some device's context."""
    found = dict(os.environ)
    if "OCL_ICD_FILENAMES" not in found:
        try:
            files = metadata.files("intel-opencl-rt") or []
        except metadata.PackageNotFoundError:
            files = []
        for file in files:
            if file.name == "libintelocl.so":
                found["OCL_ICD_FILENAMES"] = str(Path(str(file.locate())).resolve())
    return found


def ocloc_version() -> str:
    ran = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "intel-opencl-icd"], capture_output=True, text=True, check=False)
    return f"intel-opencl-icd {ran.stdout}" if ran.returncode == 0 else "ocloc"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="folder of a build that has tools/dump_spirv")
    parser.add_argument("--only", choices=TARGETS, help="one architecture")
    parser.add_argument("--write", type=Path, help="write the table to this file")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if shutil.which("ocloc") is None:
        print("SKIPPED: ocloc is missing (Debian: apt install intel-opencl-icd), so nothing was compiled for Intel GPUs")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dump = [arguments.build.resolve() / "tools" / "dump_spirv", "all", folder] + ([arguments.only] if arguments.only else [])
        dumped = subprocess.run(dump, stdout=subprocess.PIPE, text=True, check=False, env=environment())
        if dumped.returncode != 0:
            print("dump_spirv failed", file=sys.stderr)
            return 1
        programs = [parse_program(line) for line in dumped.stdout.splitlines()]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            results = list(pool.map(lambda program: compile_program(program, folder), programs))
    bad = [result for result in results if result.failure or result.spills]
    for result in bad:
        program = result.program
        constants = " ".join(f"{name}={value}" for name, value in program.constants.items())
        what = result.failure or f"spills {result.spills}"
        print(f"{program.architecture} {program.dtype} {program.layout} {program.problem}: {what}\n    {constants}", file=sys.stderr)
    print(f"{len(results)} programs for Intel GPUs, {len(bad)} with spills or errors")
    if arguments.write:
        arguments.write.write_text(document(results, ocloc_version()))
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
