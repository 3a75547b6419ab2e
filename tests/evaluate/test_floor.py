import pytest

from cupilot.evaluate.floor import FloorVerdict, check_floor
from cupilot.roofline import Placement, Source, Zone


def placed(byte_floor_s: float, operation_floor_s: float, source: Source = Source.MEASURED) -> Placement:
    return Placement(
        zone=Zone.MEMORY,
        level="DRAM",
        source=source,
        intensity_ops_per_byte=1.0,
        core_ridge_ops_per_byte=2.0,
        matrix_ridge_ops_per_byte=2.0,
        bytes_per_s=1e9,
        core_ops_per_s=1e9,
        matrix_ops_per_s=1e9,
        byte_floor_s=byte_floor_s,
        operation_floor_s=operation_floor_s,
        attainable_s=1.2 * max(byte_floor_s, operation_floor_s),
    )


MEMORY, ARITHMETIC = placed(1.0, 0.1), placed(0.1, 1.0)


@pytest.mark.parametrize("placement", [MEMORY, ARITHMETIC])
def test_a_time_well_above_the_floor_is_ok(placement: Placement) -> None:
    assert check_floor(1.2, placement).verdict is FloorVerdict.OK


def test_faster_than_the_byte_floor_asks_for_new_peaks_and_then_rejects() -> None:
    assert check_floor(0.9, MEMORY).verdict is FloorVerdict.REMEASURE
    final = check_floor(0.9, MEMORY, remeasured=True)
    assert final.verdict is FloorVerdict.REJECTED
    assert "DRAM" in final.reason
    assert "not used" in final.reason


def test_running_again_does_not_excuse_being_faster_than_the_memory() -> None:
    assert check_floor(0.9, MEMORY, remeasured=True, rerun=True).verdict is FloorVerdict.REJECTED


def test_higher_peaks_acquit() -> None:
    assert check_floor(0.9, placed(0.8, 0.1), remeasured=True).verdict is FloorVerdict.OK


def test_a_data_sheet_cannot_be_measured_again() -> None:
    assert check_floor(0.9, placed(1.0, 0.1, Source.DATASHEET)).verdict is FloorVerdict.REJECTED


def test_faster_than_the_operation_floor_is_quarantined_then_the_peaks_are_doubted_then_it_is_rejected() -> (
    None
):
    assert check_floor(0.9, ARITHMETIC).verdict is FloorVerdict.QUARANTINED
    assert check_floor(0.9, ARITHMETIC, rerun=True).verdict is FloorVerdict.REMEASURE
    final = check_floor(0.9, ARITHMETIC, rerun=True, remeasured=True)
    assert final.verdict is FloorVerdict.REJECTED
    assert "arithmetic" in final.reason


@pytest.mark.parametrize("placement", [MEMORY, ARITHMETIC])
def test_over_95_percent_of_a_peak_must_be_confirmed_from_scratch(placement: Placement) -> None:
    suspicious = check_floor(1.02, placement)
    assert suspicious.verdict is FloorVerdict.QUARANTINED
    assert "98%" in suspicious.reason
    assert check_floor(1.02, placement, rerun=True).verdict is FloorVerdict.OK
