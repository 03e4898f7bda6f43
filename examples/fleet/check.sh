#!/usr/bin/env bash
# What gemm-report fleet can tell on this host of two GPUs or more: examples/fleet/check.sh DIR [RUNS]
# measures all GPUs RUNS times (default 10), which must name none, then twice more while another
# process uses the second GPU, which must name this one. Takes 20 s a run, and writes into DIR.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=${1:?give a folder for the records} runs=${2:-10}
build=${GEMM_BENCH_BUILD:-$root/build/release}
alarms=0 missed=0

# judge NAME: exit code of the report; prints the lines of bad GPUs
judge() {
  local code=0
  "$root/tools/report" fleet "$out/$1" --json "$out/$1.json" >"$out/$1.txt" || code=$?
  grep -E '^(wrong|faulty|missing|slow|throttled) ' "$out/$1.txt" || true
  return "$code"
}

# measure NAME: what tools/fleet says is shown if it could not begin
measure() {
  local said
  said=$("$root/tools/fleet" "$out/$1" --quick --node host 2>&1) || true
  [[ -d $out/$1 ]] || { echo "$said" >&2 && exit 3; }
}

for ((run = 1; run <= runs; run++)); do
  measure "$run"
  judge "$run" || alarms=$((alarms + 1))
done
echo "$alarms of $runs undisturbed runs have an alarm"

victim=$(sed -n 2p "$out/1/host.gpus")
for rest in 0.03 0.07; do
  # Bursts of one product of 2.6 ms (H200) with a rest between them.
  CUDA_DEVICE_ORDER=PCI_BUS_ID "$build/gemm_bench" --gemm_device=1 --gemm_peaks=nominal --gemm_library=omit \
    --gemm_state=burst --gemm_burst=1 --gemm_cooldown="$rest" --benchmark_filter='^StreamK/f32/' \
    --gemm_shapes=4096 --gemm_row_budget=200 --benchmark_min_time=100000x \
    >"$out/disturber-$rest.log" 2>&1 &
  disturber=$!
  sleep 4
  measure "rest-$rest"
  kill "$disturber" 2>/dev/null || echo "the other process had ended: see $out/disturber-$rest.log"
  wait "$disturber" || true
  judge "rest-$rest" | tee "$out/bad" || true
  grep -q "host $victim" "$out/bad" || missed=$((missed + 1))
done
echo "$missed of 2 disturbed runs do not name $victim"
exit $((alarms || missed))
