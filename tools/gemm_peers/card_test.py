"""The card through a made-up NVML, compiled where there is a compiler."""

import itertools
import os
import shutil
import subprocess
import time

import pytest

from gemm_peers.card import CardError, NvmlCard, Reading, Watch, span, summary

COMPILER = shutil.which(os.environ.get("CXX", "c++"))
NVML = r"""
#include <cstring>
extern "C" {
struct Field { unsigned field, scope; long long when, late; int type, status; unsigned value[2]; };
int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** card) {
  *card = (void*)0x7000000000001;
  return std::strcmp(id, "0000:3B:00.0") == 0 ? 0 : 6;
}
const char* nvmlErrorString(int) { return "Not Found"; }
int nvmlSystemGetDriverVersion(char* to, unsigned) { std::strcpy(to, "580.95"); return 0; }
static bool known(void* card) { return card == (void*)0x7000000000001; }
int nvmlDeviceGetEnforcedPowerLimit(void* card, unsigned* to) { *to = 700000; return !known(card); }
int nvmlDeviceGetMaxClockInfo(void* card, int, unsigned* to) { *to = 1980; return !known(card); }
int nvmlDeviceGetClockInfo(void* card, int which, unsigned* to) {
  *to = which == 1 ? 1755 : 3201;
  return !known(card);
}
int nvmlDeviceGetFieldValues(void* card, int, Field* field) {
  field->type = 1;
  field->status = INSTANT;
  field->value[0] = 654321;
  return !known(card);
}
int nvmlDeviceGetPowerUsage(void* card, unsigned* to) { *to = 600000; return !known(card); }
int nvmlDeviceGetTemperature(void* card, int, unsigned* to) { *to = 51; return !known(card); }
int nvmlDeviceGetCurrentClocksEventReasons(void* card, unsigned long long* to) {
  *to = 0x4;
  return !known(card);
}
}
"""


@pytest.fixture(scope="module", params=[0, 3], ids=["instant power", "mean power"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("nvml")
    source, made = folder / "nvml.cpp", folder / f"libnvml{request.param}.so"
    source.write_text(NVML.replace("INSTANT", str(request.param)), encoding="utf-8")
    command = [COMPILER, "-shared", "-fPIC", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    return str(made)


def test_a_card_is_read_in_si_units(library: str) -> None:
    card = NvmlCard("0000:3B:00.0", library)
    reading = card.read()
    instant = "libnvml0" in library
    assert (reading.sm_hz, reading.memory_hz) == (1.755e9, 3.201e9)
    assert reading.power_w == pytest.approx(654.321 if instant else 600)
    assert reading.temperature_c == 51
    assert reading.throttled
    assert (card.driver, card.power_limit_w, card.sm_hz_max) == ("580.95", 700, 1.98e9)


def test_what_cannot_be_read_says_why(library: str) -> None:
    with pytest.raises(CardError, match=r"does not know the card 0000:01:00\.0: Not Found"):
        NvmlCard("0000:01:00.0", library)
    with pytest.raises(CardError, match=r"NVML is not installed \(libnothing.so\)"):
        NvmlCard("0000:3B:00.0", "libnothing.so")


class Counting:
    """Each reading has the next clock."""

    driver = power_limit_w = sm_hz_max = None

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def read(self) -> Reading:
        return Reading(time.perf_counter(), float(next(self._next)))


def test_a_watch_keeps_the_readings_of_an_interval() -> None:
    start = time.perf_counter()
    with Watch(Counting(), 0.001) as watch:
        while len(watch.between(start, time.perf_counter())) < 5:
            time.sleep(0.001)
        readings = watch.between(start, time.perf_counter())
    assert [reading.sm_hz for reading in readings] == list(range(1, len(readings) + 1))
    third = readings[2].when
    assert [r.sm_hz for r in watch.between(third, readings[3].when)] == [3, 4]
    assert watch.between(0, start) == []
    assert watch.read_seconds is not None


def test_readings_in_short_have_shares_of_those_that_tell() -> None:
    readings = [
        Reading(0, 1.9e9, 3.2e9, 690.0, 60.0, 0x4),
        Reading(1, 1.8e9, 3.2e9, 700.0, None, 0x4 | 0x20),
        Reading(2, None, None, None, None, None),
        Reading(3, 1.7e9, 3.2e9, 710.0, 62.0, 0x1),
        Reading(4, 1.7e9, 3.2e9, 710.0, 62.0, 0x4000),
    ]
    found = summary(readings, [])
    assert found["readings"] == 5
    assert found["sm_hz"] == {"min": 1.7e9, "median": 1.75e9, "max": 1.9e9}
    assert found["throttled_share"] == 0.5
    assert found["reasons"] == {
        "power cap": 0.5,
        "thermal slowdown (software)": 0.25,
        "other": 0.25,
    }
    assert found["sm_hz_by_timer"] is None
    assert summary([Reading(0)], [1e9])["throttled_share"] is None
    assert span([None]) is None
