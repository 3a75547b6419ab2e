from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cupilot.cli import roofline
from cupilot.cli.roofline import Placed, page, run, to_json
from cupilot.cli.units import scaled, seconds
from cupilot.device.datasheet import find_gpu, gpu_peaks
from cupilot.device.peaks import CpuPeaks
from cupilot.errors import UsageError
from cupilot.problem.operators import Operation
from cupilot.problem.precision import Arithmetic
from cupilot.roofline import Work, Zone, place

THIN = Work(800e6, 800e6, {Operation.CONTRACTION: 100e9})
COPY = Work(1e9, 1e9, {})
H200 = gpu_peaks(find_gpu("H200"))

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x @ y
def get_inputs():
    return [torch.rand(512, 512), torch.rand(512, 512)]
def get_init_inputs():
    return []
"""


def placed(work: Work, arithmetic: Arithmetic = Arithmetic.TF32, note: str = "") -> Placed:
    return Placed(H200, place(work, H200, arithmetic, 1 << 30), note)


def shown(work: Work, *items: Placed) -> str:
    console = Console(file=StringIO(), width=80, color_system=None)
    console.print(page("thin", "f32/tf32", work, items))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_page_fits_80_columns_and_says_what_binds() -> None:
    text = shown(THIN, placed(THIN))
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    for words in (
        "middle",
        "predicted",
        "H200 SXM",
        "800 MB",
        "100 G contraction",
        "4.8 TB/s (DRAM)",
        "13.9 and 103",
    ):
        assert words in text


def test_the_plot_marks_the_problem_once_on_the_slope_and_draws_both_ceilings() -> None:
    lines = shown(THIN, placed(THIN)).splitlines()
    (marked,) = (i for i, line in enumerate(lines) if "●" in line)
    ceilings = [i for i, line in enumerate(lines) if any(line.rstrip().endswith(c * 8) for c in "⠤⠒⠉⣀")]
    assert len(ceilings) == 2
    assert ceilings[0] < marked <= ceilings[1], "in the middle zone: between the two"


def test_a_problem_without_arithmetic_has_no_mark() -> None:
    text = shown(COPY, placed(COPY))
    assert "●" not in text
    assert "computes nothing" in text
    assert "memory" in text


def test_a_problem_far_from_both_ridges_stays_in_sight() -> None:
    for work in (Work(1e9, 1e9, {Operation.ARITHMETIC: 1e3}), Work(1e3, 1e3, {Operation.CONTRACTION: 1e15})):
        assert "●" in shown(work, placed(work))


def test_json_is_complete() -> None:
    data = json.loads(json.dumps(to_json("thin", "f32/tf32", THIN, (placed(THIN, note="busy"),))))
    assert data["operations"] == {"contraction": 100e9}
    (device,) = data["devices"]
    assert device["zone"] == Zone.MIDDLE
    assert device["kind"] == "predicted"
    assert device["note"] == "busy"
    assert (
        device["floor_s"]
        == max(device["byte_floor_s"], device["operation_floor_s"])
        <= device["attainable_s"]
    )
    assert len(device["ridges_ops_per_byte"]) == 2


def test_the_command_prints_one_json_object_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.py").write_text(PROBLEM)
    monkeypatch.setattr(roofline, "cpu_peaks", lambda: CpuPeaks(H200, H200, "others at work"))
    assert run(str(tmp_path / "p.py"), size=None, device="cpu, RTX 4090", json=True) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    data = json.loads(out)
    assert data["operations"]["contraction"] == 512 * 512 * (2 * 512 - 1)
    assert [d["device"] for d in data["devices"]] == ["H200 SXM", "RTX 4090"]
    assert "others at work" in data["devices"][0]["note"]


def test_an_unknown_device_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PROBLEM)
    with pytest.raises(UsageError, match="no GPU of the table"):
        run(str(tmp_path / "p.py"), size=None, device="Voodoo 2", json=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.5, "2.5 s"), (0.00321, "3.21 ms"), (4.2e-5, "42 us"), (3e-9, "3 ns"), (0.0, "0 ns")],
)
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


def test_scaled() -> None:
    assert scaled(1.5e12, "op/s") == "1.5 Top/s"
    assert scaled(12, "B") == "12 B"
