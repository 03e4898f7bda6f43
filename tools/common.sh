# What tools share: they source it.
# shellcheck shell=bash
# Where this file is, whatever links, CDPATH or the current folder say.
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
bad_input=2

# die MESSAGE [STATUS]: ends with the status of bad input, if none is given
die() {
  echo "${0##*/}: $1" >&2
  exit "${2:-$bad_input}"
}

# setup PURPOSE [ARGUMENT...]: takes over the environment that tools/setup prints
setup() {
  local environment
  environment=$("$root/tools/setup" "$@") || die "dependencies are missing: see above" "${missing_status:-1}"
  eval "$environment"
}

# build SOURCE FOLDER TARGET...: configured afresh where the folder was made for another place
build() {
  (
    cd "$1"
    fresh=()
    grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$1" "$2/CMakeCache.txt" || fresh=(--fresh)
    cmake --preset release -B "$2" -DGEMM_BENCH_CUDA="$CUDA" "${fresh[@]}" --log-level=NOTICE &&
      cmake --build "$2" --target "${@:3}" --parallel "$(nproc)"
  ) >&2
}

# run COMMAND...: its status; signals to this script reach it, also those that are not the terminal's
run() {
  local status=0 child
  set -m # else the child would ignore Ctrl-C
  "$@" &
  child=$!
  set +m
  trap 'kill -INT "$child" 2>/dev/null' INT
  trap 'kill -TERM "$child" 2>/dev/null' TERM HUP
  while
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null
  do :; done
  trap - INT TERM HUP
  return "$status"
}

# interleave: measures both sides, $processes times each, into $output; side NAME sets `command`
interleave() {
  local i each status order command
  for ((i = 1; i <= processes; i++)); do
    # In the order A B B A, so that drift favours neither.
    order=(base new)
    ((i % 2)) || order=(new base)
    for each in "${order[@]}"; do
      side "$each"
      status=0
      echo "${0##*/}: $each, process $i of $processes" >&2
      run "${command[@]}" --benchmark_out="$output/$each/$i.json" --benchmark_out_format=json >&2 ||
        status=$?
      # 1: a kernel is wrong, which the comparison reports
      ((status < 2)) || die "$each, process $i of $processes ended with $status; records: $output"
    done
  done
}

# python MODULE ARGUMENT...: ends with a module of report/ or tools/, whatever lies in the current
# folder, PYTHONPATH or PYTHONHOME
python() {
  exec "$PYTHON" -E -P -c '
import runpy, sys
root, name = sys.argv.pop(1), sys.argv.pop(1)
sys.path[:0] = [f"{root}/report", f"{root}/tools"]
runpy.run_module(name, run_name="__main__", alter_sys=True)' "$root" "$@"
}
