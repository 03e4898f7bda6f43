"""From observations to findings, the most important first, and to the next two steps.

A *fault* is avoidable: its gain is the share of the time that fixing it could save. That is what it
wastes, weighted by how much the kernel waits for it, and at most what is left until another
resource limits that the fault does not load itself. A fault worth a tenth of the time comes first.
Then comes the *bottleneck*: the resource that is busy for the largest share of the time, from six
tenths on; if there is none, latency. Small faults come last. That there is no bottleneck is seen
with counters alone: without them it comes after all that was found.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest

from gemm_report.explain.metrics import STALLS, WORDS
from gemm_report.explain.observations import Level, Observations
from gemm_report.text import megahertz, percent, quantity, significant

_WORTH = 0.10  # a fault of this gain comes before the bottleneck
_SEEN = 0.03  # of a smaller gain nothing is said
_LIMITS = 0.60  # of the time a resource is busy, so that it is called the bottleneck
_PEAK = 0.90  # so much of a unit's rate is all that one gets
_FEW_WARPS = 0.30  # an occupancy that leaves schedulers without choice
_ENOUGH_WARPS = 0.50
_LEAST_GAP = 1e-6  # seconds between launches that are no noise
_THROTTLED = 0.5
_WHOLE_SECTORS = 4.0  # of a request for 32 neighbouring words
_WIDEST_SECTORS = 16.0  # of one for 16 bytes a lane
# Assumed of a spill whose cost was not counted, without and with another bottleneck.
_UNCOUNTED_SPILL, _COVERED_SPILL = 0.25, _SEEN
_LANES = 32
_INDEXED = 0.25  # of the accesses to local memory, so that an array is their cause
_GUARDS = 0.10  # of the lanes that predicates switch off, nothing is said
# Per product: fewer integer instructions are addresses, fewer conversions those of each element.
_INTEGERS, _CONVERSIONS = 3.0, 0.25
_NO_TENSOR_CORES = ("f32", "f64", "s32", "tf32x3")
_LADDER = ("simt", "tensor")
_GLOBAL_WAITS = ("long_scoreboard", "lg_throttle")
_SHARED_WAITS = ("short_scoreboard", "mio_throttle")

_LSU, _SHARED = "bound by the load/store units", "bound by shared memory"


@dataclass(frozen=True)
class Finding:
    """One thing that costs time: how much, why one thinks so, and whether that is modelled."""

    kind: str  # of the titles and steps in words.toml
    title: str
    share: float  # of the time: what a fault wastes, or for how much a resource is busy
    is_fault: bool
    evidence: tuple[str, ...]
    modelled: bool = False


@dataclass(frozen=True)
class Step:
    """What to do next; the rung of the ladder that does it, if one does."""

    text: str
    rung: str | None


@dataclass(frozen=True)
class Diagnosis:
    """The findings, the most important first, and what to do about them."""

    findings: tuple[Finding, ...]
    steps: tuple[Step, ...]


# Rung and text of the steps of each kind.
STEPS = {
    kind: [(name or None, text) for names, text in steps for name in names.split(", ")]
    for kind, steps in WORDS["steps"].items()
}


def diagnose(seen: Observations, ladder: Iterable[tuple[str, str, int]] = ()) -> Diagnosis:
    """What limits it. `ladder` has name, family and rung of each kernel that a step may name."""
    resources = [*(_memory(seen, level) for level in seen.levels), _requests(seen), _unit(seen)]
    busy = [each for each in (*resources, _issue(seen), *_pipes(seen)) if each]
    top = max(busy, key=lambda finding: finding.share, default=None)
    nearest = top.share if top else 0.0
    found = (
        *(_host(seen), _spills(seen, busy), _uncoalesced(seen)),
        _stalls(seen, nearest, "barriers", "barrier"),
        _stalls(seen, nearest, "branches", "branch_resolving"),
        *(fault(seen) for fault in (_divergence, _fp64, _conversions, _integers, _atomics)),
        *(_conflicts(seen), _tail(seen), _occupancy(seen, nearest), _power(seen)),
    )
    faults = [
        replace(each, share=max(0.0, min(each.share, 1 - _beside(each.kind, busy))), is_fault=True)
        for each in found
        if each
    ]
    faults = sorted((f for f in faults if f.share >= _SEEN), key=lambda f: -f.share)
    limiting = sorted((f for f in busy if f.share >= _LIMITS), key=lambda f: -f.share)
    waiting = [] if limiting else [_waiting(seen, top)]
    findings = [
        *(fault for fault in faults if fault.share >= _WORTH),
        *(limiting or (waiting if seen.has_counters else [])),
        *(fault for fault in faults if fault.share < _WORTH),
        *([] if seen.has_counters else waiting),
    ]
    if seen.hot_line and findings:
        findings[0] = replace(findings[0], evidence=(*findings[0].evidence, seen.hot_line))
    return Diagnosis(tuple(findings), _steps(seen, findings, list(ladder)))


def _beside(kind: str, busy: list[Finding]) -> float:
    """How busy the busiest resource is that a fault does not load itself."""
    return max(
        (f.share for f in busy if f.kind not in WORDS["relieves"].get(kind, ())), default=0.0
    )


def _finding(
    kind: str,
    share: float,
    evidence: Iterable[object],
    modelled: bool = False,
    title: str | None = None,
) -> Finding:
    """What is busy or wasted for a share of the time. Of the evidence only what is there counts."""
    said = tuple(each for each in evidence if each and isinstance(each, str))
    return Finding(kind, title or WORDS["titles"][kind], share, False, said, modelled)


def _waits(seen: Observations, what: str, *reasons: str) -> str | None:
    share = seen.stall_share(*reasons)
    return None if share is None else f"{percent(share)} of the warps' time {what}"


def _memory(seen: Observations, level: Level) -> Finding | None:
    used = seen.used(level)
    kind, before, hits = {
        "DRAM": ("DRAM-bound", "L2", seen.l2_hits),
        "L2": ("L2-bound", "L1", seen.l1_hits),
    }.get(level.name, (_SHARED, "", None))
    beyond = used is not None and used > 1 and level.is_modelled
    moved, roof = level.bytes, level.roof_bytes_per_second
    if used is None or (beyond and kind != "L2-bound"):
        return None  # the model asks for more than can have moved
    assert moved and roof and seen.seconds, "what `used` follows from"
    evidence = [
        f"{quantity(moved, 'B')} of {level.name} per launch, "
        f"{'modelled' if level.is_modelled else 'counted'}: "
        f"{quantity(moved / seen.seconds, 'B/s')} of {quantity(roof, 'B/s')} ({level.roof})",
        level.modelled_bytes
        and level.counted_bytes
        and f"counted / modelled bytes: {level.counted_bytes / level.modelled_bytes:.2f}",
        (each := seen.flop_per_byte(level))
        and f"{significant(each)} FLOP/byte: at most {quantity(each * roof, 'FLOP/s')}",
        hits is not None and f"{percent(hits)} of the sectors hit in {before}",
    ]
    title = f"{level.name[0].upper()}{level.name[1:]} is busy for {percent(used)} of the time"
    if beyond:
        title = f"Loads request {percent(used)} of what the L2 can deliver: some are L1 hits"
    return _finding(kind, min(used, 1.0), evidence, level.is_modelled, title)


def _requests(seen: Observations) -> Finding | None:
    """Of warps to global and local memory: a multiprocessor takes one a clock, and 128 bytes."""
    if seen.requests_per_clock is None:
        return None
    passes = max(1.0, (seen.sectors_per_load or 0.0) / _WHOLE_SECTORS)
    share = min(1.0, seen.requests_per_clock * passes)
    waits = seen.stall_share("lg_throttle")
    evidence = [
        f"{significant(seen.requests_per_clock)} requests of warps to global memory per cycle of "
        "an SM, which takes one",
        passes > 1 and f"each touches {seen.sectors_per_load:.1f} sectors, 4 at a time",
        waits and f"{percent(waits)} of the warps' time waits because their queue is full",
    ]
    title = f"The load/store units are busy for {percent(share)} of the time"
    return _finding(_LSU, share, evidence, title=title)


def _unit(seen: Observations) -> Finding | None:
    """The unit that multiplies, at the clock that it had."""
    roof = seen.unit_flop_per_second
    if not (roof and seen.flop_per_second):
        return None
    by = f"{seen.unit} at {megahertz(seen.unit_hz)}" if seen.unit_hz else str(seen.unit)
    if seen.unit_hz and seen.sm_hz:
        roof *= seen.sm_hz / seen.unit_hz
        by = f"{seen.unit} at the observed {megahertz(seen.sm_hz)}"
    if seen.tensor_unit == "mma.sync" and seen.mma_flop_per_second:
        roof = min(roof, seen.mma_flop_per_second)
        by = "mma.sync as measured, which is all that it reaches on this GPU"
    used = seen.flop_per_second / roof
    is_tensor = seen.tensor_unit is not None or "tensor" in (seen.unit or "").lower()
    waits = seen.stall_share("math_pipe_throttle", "gmma")
    evidence = [
        f"{quantity(seen.flop_per_second, 'FLOP/s')} of {quantity(roof, 'FLOP/s')}: {by}",
        seen.counted_over_needed and f"counted / needed FLOP: {seen.counted_over_needed:.2f}",
        waits and f"{percent(waits)} of the warps' time waits for an arithmetic unit",
    ]
    name = "The tensor cores are" if is_tensor else f"The unit ({seen.unit}) is"
    title = f"{name} busy for {percent(used)} of the time"
    kind = "tensor-bound" if is_tensor else "arithmetic-bound"
    return _finding(kind, min(used, 1.0), evidence, title=title)


def _pipes(seen: Observations) -> list[Finding]:
    """Those that multiply no matrices in FP32: what fills them is work beside the product."""
    kinds = {"ALU": "bound by the ALU pipe", "XU": "bound by the XU pipe"}
    if seen.precision != "f64":
        kinds["FP64"] = "FP64 arithmetic"
    found = []
    for name, used in seen.pipes:
        if name in kinds and (share := used * seen.working):
            title = f"The {name} pipe is busy for {percent(share)} of the time"
            found.append(_finding(kinds[name], share, _work(seen), title=title))
    return found


def _work(seen: Observations) -> list[object]:
    """What is computed beside the product, and by which pipe."""
    integers, conversions = seen.integers_per_product, seen.conversions_per_product
    pipes = ", ".join(f"{name} {percent(used)}" for name, used in seen.pipes)
    return [
        pipes and f"pipes: {pipes}",
        integers and f"{significant(integers)} integer instructions per product",
        conversions and f"{significant(conversions)} type conversions per product",
    ]


def _issue(seen: Observations) -> Finding | None:
    if seen.issue_active is None:
        return None
    share = seen.issue_active * seen.working
    ffma = seen.ffma_share if seen.tensor_share is None else None
    if ffma is not None and min(ffma, share) >= _PEAK and seen.unit_flop_per_second:
        return None  # the slots are full of what is wanted: the unit limits
    tensor, ready = seen.tensor_share, seen.stall_share("not_selected")
    evidence = [
        f"the schedulers issue in {percent(seen.issue_active)} of their cycles",
        ffma is not None
        and f"{percent(ffma)} of the instructions are FFMA: the others take "
        f"{percent(1 - ffma)} of the slots",
        tensor is not None and f"{percent(tensor)} of the instructions are of tensor cores",
        ready and f"{percent(ready)} of the warps' time is ready but not selected",
    ]
    title = f"The issue slots are busy for {percent(share)} of the time"
    return _finding("issue-bound", share, evidence, title=title)


def _waiting(seen: Observations, top: Finding | None) -> Finding:
    """Nothing is busy enough to limit, not even what is busiest."""
    if top is None:
        evidence: list[object] = ["no roof, no model, no counter"]
        return _finding("unknown", 0.0, evidence, True, "No limit of it is known")
    nearest = f"closest to its limit: {top.title[0].lower()}{top.title[1:]}"
    evidence = [nearest, *dict.fromkeys([*top.evidence, *_stall_texts(seen), *_work(seen)])]
    if seen.has_counters:
        return _finding("latency-bound", 1 - top.share, evidence)
    # What was neither counted nor modelled may be busy all the time.
    unseen = [f"{level.name}, " for level in seen.levels if seen.used(level) is None]
    evidence.append(f"not observed: {''.join(unseen)}the load/store units, the issue slots")
    return _finding("unknown", 0.0, evidence, True)


def _stall_texts(seen: Observations) -> list[str]:
    return [
        f"{percent(share)} of the warps' time they {text} ({reason})"
        for reason, text, share in stall_ranking(seen)[:3]
    ]


def stall_ranking(seen: Observations) -> list[tuple[str, str, float]]:
    """Reasons, in words, with their shares of the warps' time: what is no waiting left out."""
    shares = [
        (reason, STALLS.get(reason, "wait"), seen.stall_share(reason) or 0.0)
        for reason, _ in seen.stalls
        if reason not in ("selected", "not_selected")
    ]
    return sorted((each for each in shares if each[2] >= 0.01), key=lambda each: -each[2])


def _weight(seen: Observations, memory: str, *waits: str) -> float:
    """How much of the time depends on a memory: as far as it limits, or is waited for."""
    used = next((seen.used(level) for level in seen.levels if level.name == memory), None)
    limits = used if used is None or used >= _LIMITS else 0.0
    shares = [share for share in (limits, seen.stall_share(*waits)) if share is not None]
    return min(1.0, max(shares, default=1.0))


def _host(seen: Observations) -> Finding | None:
    if not seen.seconds:
        return None
    modelled = seen.kernel_seconds is None
    if seen.kernel_seconds is not None:
        gap, least = seen.seconds - seen.kernel_seconds, _LEAST_GAP
        evidence = (
            f"a launch takes {quantity(seen.seconds, 's')}, its kernels alone "
            f"{quantity(seen.kernel_seconds, 's')} by ncu at the same clock"
        )
    elif seen.launch == "stream" and seen.launch_seconds:
        # As long as the host is ahead of the GPU its time is not seen.
        gap, least = seen.launches * seen.launch_seconds, 0.5 * seen.seconds
        evidence = (
            f"{seen.launches} launches at {quantity(seen.launch_seconds, 's')} each of the host's "
            f"time, of {quantity(seen.seconds, 's')} in all"
        )
    else:
        return None
    if gap < least:
        return None
    share = min(gap / seen.seconds, 1.0)
    title = f"The GPU waits for the host for {percent(share)} of the time"
    return _finding("host-bound", share, [evidence], modelled, title)


def _spills(seen: Observations, busy: list[Finding]) -> Finding | None:
    share, indexed = seen.local_share, seen.local_indexed
    if not seen.local_bytes and not share:
        return None
    if share is None:
        waste = _COVERED_SPILL if _beside("spills", busy) >= _LIMITS else _UNCOUNTED_SPILL
    else:
        waste = share * _weight(seen, "L2", *_GLOBAL_WAITS)
    evidence = [
        seen.local_bytes and f"{seen.local_bytes} bytes of local memory per thread",
        "only counters tell how often they are read"
        if share is None
        else f"{percent(share)} of the memory requests are for them",
        indexed is not None
        and f"{percent(indexed)} of them have a run-time index, the others are spilled registers",
    ]
    # What fills an array often has constant indices.
    kind = "local array" if (indexed or 0) >= _INDEXED else "spills"
    return _finding(kind, waste, evidence, share is None)


def _uncoalesced(seen: Observations) -> Finding | None:
    sectors, use = seen.sectors_per_load, seen.sector_use
    if sectors is None or sectors <= _WHOLE_SECTORS:
        return None
    # 16 bytes a lane take 16 sectors that are wanted whole; of what is wanted nothing is wasted.
    wasted = 1 - (_WIDEST_SECTORS / sectors if use is None else use)
    if not wasted > 0:
        return None
    evidence = [
        f"a load request of a warp touches {sectors:.1f} sectors of 32 bytes; adjacent words "
        "would take 4, 16 bytes per lane 16",
        use is not None and f"{percent(use)} of each sector is used",
        _waits(seen, "waits for global memory", *_GLOBAL_WAITS),
    ]
    waste = wasted * _weight(seen, "L2", *_GLOBAL_WAITS)
    return _finding("uncoalesced", waste, evidence)


def _stalls(seen: Observations, nearest: float, kind: str, reason: str) -> Finding | None:
    waits = seen.stall_share(reason)
    if not waits:
        return None
    # As far as a resource is busy meanwhile, other warps fill the gap.
    return _finding(kind, waits * (1 - nearest), [_waits(seen, f"they {STALLS[reason]}", reason)])


def _divergence(seen: Observations) -> Finding | None:
    # An instruction of tensor cores is of the whole warp; one lane alone may start a TMA copy.
    if seen.lanes is None or seen.lanes_on is None or seen.tensor_unit:
        return None
    idle, off = 1 - seen.lanes / _LANES, (seen.lanes - seen.lanes_on) / _LANES
    evidence = [
        f"{seen.lanes:.1f} of {_LANES} lanes are active for an instruction",
        f"{seen.lanes_on:.1f} are not switched off by a predicate",
    ]
    # A guard at an edge costs a slot or two; what is divergent is executed once for each path.
    waste = idle + max(0.0, off - _GUARDS)
    return _finding("divergence", waste, evidence)


def _fp64(seen: Observations) -> Finding | None:
    used = dict(seen.pipes).get("FP64")
    if not used or not seen.fp64_pace or seen.precision == "f64":
        return None
    used *= seen.working
    # The conversions from and to FP64 run on the XU pipe.
    waste = max(used, dict(seen.pipes).get("XU", 0.0)) - seen.fp64_pace
    said = f"the FP64 pipe is busy for {percent(used)} of the time in a {seen.precision} product"
    return _finding("FP64 arithmetic", waste, [said, *_work(seen)])


def _conversions(seen: Observations) -> Finding | None:
    each = seen.conversions_per_product or 0
    # Conversions to FP64 and back are part of that; divisions of integers convert, too.
    if each < max(_CONVERSIONS, (seen.integers_per_product or 0) / 4) or _fp64(seen):
        return None
    if not seen.conversion_share:
        return None
    slots = (seen.issue_active or 0.0) * seen.conversion_share
    waste = max(slots, dict(seen.pipes).get("XU", 0.0)) * seen.working
    return _finding("type conversions", waste, _work(seen))


def _integers(seen: Observations) -> Finding | None:
    each = seen.integers_per_product
    if not each or each < _INTEGERS or not seen.integer_share:
        return None
    beyond = seen.integer_share * (1 - _INTEGERS / each)
    # Warps also wait for what they compute one after the other.
    computing = ("wait", "math_pipe_throttle", "selected", "not_selected", "dispatch_stall")
    slots = (seen.issue_active or 0.0) * seen.working
    waste = beyond * max(slots, seen.stall_share(*computing) or 0.0)
    evidence = [f"{percent(seen.integer_share)} of the instructions are integer", *_work(seen)]
    return _finding("integer work", waste, evidence)


def _atomics(seen: Observations) -> Finding | None:
    share = seen.atomic_share
    if not share:
        return None
    waste = share * _weight(seen, "L2", *_GLOBAL_WAITS, *_SHARED_WAITS, "membar", "drain")
    said = f"{percent(share)} of the memory traffic are atomics, each counted as 8 requests"
    return _finding("atomics", waste, [said])


def _conflicts(seen: Observations) -> Finding | None:
    share = seen.conflict_share
    if not share:
        return None
    evidence = [
        f"{percent(share)} of the wavefronts of shared memory are bank conflicts (wide loads and "
        "arbitration count, too)",
        _waits(seen, "waits for shared memory", *_SHARED_WAITS),
    ]
    waste = share * _weight(seen, "shared memory", *_SHARED_WAITS)
    return _finding("bank conflicts", waste, evidence)


def _tail(seen: Observations) -> Finding | None:
    if seen.waves is None:
        return None
    whole = max(1.0, float(-(-seen.waves // 1)))
    waste, beyond, unused = 1 - seen.waves / whole, 0.0, seen.idle_share
    if unused is not None:
        # Under ncu a launch is by itself and its caches are cold: what it takes longer than one of
        # many cannot be gained. Blocks of unlike lengths fill gaps that the number of waves
        # promises; those that take several tiles each end at different times in one wave.
        alone = seen.kernel_seconds or 0.0
        beyond = max(0.0, 1 - seen.seconds / alone) if seen.seconds and alone else 0.0
        idle = max(0.0, unused - beyond)
        waste = idle if seen.waves == 1 else min(waste, idle)
    waves = f"{seen.waves:.4g} waves, which take the time of {whole:.0f}"
    evidence = [
        f"{seen.blocks} blocks on {seen.sm_count} SMs are "
        f"{'one wave' if seen.waves == 1 else waves}",
        unused is not None and f"SMs are idle for {percent(unused)} of the launch",
    ]
    title = "There are too few blocks for the GPU" if whole == 1 else None
    if seen.waves == 1:
        title = "SMs start and finish at different times"
    return _finding("tail wave", waste, evidence, unused is None, title)


def _occupancy(seen: Observations, nearest: float) -> Finding | None:
    occupancy = seen.occupancy if seen.occupancy is not None else seen.warps_active
    if occupancy is None or occupancy >= _FEW_WARPS or nearest >= _LIMITS:
        return None  # few warps are enough for what limits
    active = seen.warps_active
    evidence = [
        f"{percent(occupancy)} of the warps that an SM has room for fit",
        seen.occupancy_limits and f"the limit: {', '.join(seen.occupancy_limits)}",
        active is not None and f"{percent(active)} were resident on average",
        *_stall_texts(seen)[:1],
    ]
    waste = (1 - nearest) * (1 - occupancy / _ENOUGH_WARPS)
    return _finding("low occupancy", waste, evidence, not seen.has_counters)


def _power(seen: Observations) -> Finding | None:
    named = any("power" in reason.lower() for reason in seen.reasons)
    if not named or (seen.throttled_share or 0) < _THROTTLED or not (seen.sm_hz and seen.unit_hz):
        return None
    limit = f" of {seen.power_limit_w:.0f} W" if seen.power_limit_w else ""
    evidence = [
        f"{megahertz(seen.sm_hz)} instead of {megahertz(seen.unit_hz)}, the clock of its peak",
        f"throttled for {percent(seen.throttled_share)} of the time: {', '.join(seen.reasons)}",
        seen.power_w and f"{seen.power_w:.0f} W{limit}",
        _joules(seen),
    ]
    return _finding("power-capped", 1 - seen.sm_hz / seen.unit_hz, evidence)


def _joules(seen: Observations) -> str | None:
    """What the energy of a launch goes into."""
    if not (seen.energy and seen.power_w and seen.seconds):
        return None
    whole = seen.power_w * seen.seconds
    rest = 1 - sum(joules for _, joules in seen.energy) / whole
    shares = [f"{name} {percent(joules / whole)}" for name, joules in seen.energy]
    shares.append(f"rest {percent(rest)}" if rest >= 0 else f"{percent(-rest)} too much")
    of = {level.is_modelled for level in seen.levels if level.bytes}
    known = f"with {'modelled' if True in of else 'counted'} bytes" if of else "bytes unknown"
    parts = f"{', '.join(shares)} (from the power of probes, {known})"
    return f"{quantity(whole, 'J')} a launch: {parts}"


def _steps(
    seen: Observations, findings: list[Finding], ladder: list[tuple[str, str, int]]
) -> tuple[Step, ...]:
    """The first step of each finding that the kernel has not taken, then the second; two in all."""
    candidates = [
        [step for known in STEPS[need] if (step := _ahead(seen, *known, ladder))]
        for f in findings
        # A unit that is not yet at its peak wants to be fed: slots that go elsewhere hold it up.
        for need in ["issue-bound" if f.kind == "arithmetic-bound" and f.share < _PEAK else f.kind]
    ]
    alternating = (step for together in zip_longest(*candidates) for step in together if step)
    return tuple(dict.fromkeys(alternating))[:2]


def _ahead(
    seen: Observations, name: str | None, text: str, ladder: list[tuple[str, str, int]]
) -> Step | None:
    """A step that is one for this kernel: above its rung, in its precision."""
    # A kernel that is not of the ladder stands on no rung: every step may be ahead of it.
    stands = seen.rung if seen.family in _LADDER else None
    family, rung = next(((f, r) for other, f, r in ladder if other == name), (None, 0))
    if name is None or family is None:
        return None if name and stands is not None else Step(text, None)
    if name == "3xTF32":
        is_ahead = seen.precision == "f32"
    elif family == "tensor" and seen.precision in _NO_TENSOR_CORES:
        is_ahead = False
    else:
        is_ahead = stands is None or rung > stands
    return Step(text, name) if is_ahead else None
