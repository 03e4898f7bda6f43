"""The words of the pages: what each term means."""

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "% of peak": "Rate over the nominal peak of the problem: the lower of the execution unit's "
    "peak and arithmetic intensity times DRAM bandwidth.",
    "% at clock": "Rate over the same peak at the median SM clock of the result.",
    "% of library": "Rate over that of the fastest library on the same problem.",
    "geometric mean": "Of our fastest kernel's rate over the fastest library's, over the problems "
    "that both were timed on.",
    "time": "Of one launch: the median of the samples.",
    "J": "Energy of one GEMM: median power of the board times median time.",
    "error / bound": "Largest error of an element over the rounding error bound of that element. "
    "Above 100 % the result has failed.",
    "clean": "Timed, not throttled, and measured as NVIDIA's guideline asks.",
    "throttled": "The driver reported a limit on the clocks while the result was timed.",
    "off-guideline": "Deviates from NVIDIA's guideline for benchmarking; figures mark it with a "
    "star (*). The details of the result say in what.",
    "host code": "A .so or .py file, which runs in the process that measures it and could change "
    "its checks.",
    "suspect": "The result was right, but not in the time of the work: it was faster on operands "
    "that it had seen before, or without a pause.",
    "failed": "The result was wrong, the time beat the hardware, or the kernel did not end.",
    "layout": "Of A and B: n row-major, t transposed. Without one, nn.",
    "nominal peak, measured peak": "From the data sheet or the device's clock; reached by a "
    "microbenchmark that does nothing else.",
}
