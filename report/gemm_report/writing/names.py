"""Names and units as people write them: a record has bf16 and s8, a title BF16 and INT8."""

_PRECISIONS = {
    "f32": "FP32",
    "tf32": "TF32",
    "tf32x3": "FP32 as 3×TF32",
    "bf16": "BF16",
    "f16": "FP16",
    "e4m3": "FP8 E4M3",
    "e4m3fast": "FP8 E4M3 fast",
    "e5m2": "FP8 E5M2",
    "e5m2fast": "FP8 E5M2 fast",
    "f64": "FP64",
    "f64emulated": "FP64 on INT8 tensor cores",
    "s32": "INT32",
    "s8": "INT8",
}
_PROBES = {"DRAM_read": "DRAM", "L2_read": "L2", "Shared_read": "Shared memory"}


def precision_name(precision: str) -> str:
    """For titles: FP8 E4M3; the code itself where it is not known."""
    return _PRECISIONS.get(precision, precision)


def operations(precision: str | None) -> str:
    """FLOP/s, and OP/s of integers."""
    return "OP/s" if precision in ("s32", "s8") else "FLOP/s"


def roof_name(name: str) -> str:
    """Of a ceiling, for labels: DRAM, FP32 FMA, BF16 wgmma."""
    return _PROBES.get(name, name.replace("_", " "))
