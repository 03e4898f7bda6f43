# What tools share: they source it.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bad_input=2

# die MESSAGE [STATUS]: ends with the status of bad input, if none is given
die() {
  echo "${0##*/}: $1" >&2
  exit "${2:-$bad_input}"
}

# prepare OPTION...: sets gemm_bench, which it builds unless GEMM_BENCH_BUILD has it, and names, those
# of the benchmarks that these options choose; ends if they are bad
prepare() {
  local environment
  environment=$("$root/tools/setup" bench)
  eval "$environment"
  if [[ ! ${GEMM_BENCH_BUILD:-} ]]; then
    gemm_bench=$root/build/$PRESET/gemm_bench
    names=$("$root/tools/bench" "$@" --benchmark_list_tests) # builds
    return
  fi
  [[ $GEMM_BENCH_BUILD == /* ]] || GEMM_BENCH_BUILD=$root/$GEMM_BENCH_BUILD
  gemm_bench=$GEMM_BENCH_BUILD/gemm_bench
  [[ -x $gemm_bench ]] || die "GEMM_BENCH_BUILD: $gemm_bench does not exist: build it, or unset the variable"
  names=$("$gemm_bench" "$@" --benchmark_list_tests)
}
