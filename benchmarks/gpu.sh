#!/usr/bin/env bash
# On a machine with a GPU: build the CUDA modules, run all tests that can run on it, measure; in under 8 minutes.
#
#   benchmarks/gpu.sh [FOLDER]     default: out/gpu
#
# FOLDER gets summary.json (the card's name, the versions, how each group of tests ended), results.json and table.txt
# (the benchmark), and the log of each step.  PYTHON=… names the interpreter, which has NumPy, pytest, hypothesis,
# pybind11 and cmake; without it the checkout's environment is used.
set -uo pipefail
cd "$(dirname "$0")/.."
out="$(realpath -m "${1:-out/gpu}")"
mkdir -p "$out"
python="${PYTHON:-$(python3 tools/setup_environment.py)}" || exit 1
export NEEDLE_CUDA_EMU=0 OMP_NUM_THREADS=4 NEEDLE_NUM_THREADS=4
workers=4  # processes that share the GPU

if ! nvidia-smi -L 2>/dev/null | grep 'GPU 0' >/dev/null; then
  echo "gpu.sh: nvidia-smi finds no GPU; nothing was run" >&2
  exit 1
fi
card="$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader -i 0)"
echo "on $card"

clean() { tr -d '"\\' | tr -cd '[:print:]'; }  # what can stand in a JSON string

verdicts=()
# step NAME SECONDS COMMAND…: run it with a limit, keep its log, note how it ended
step() {
  local name="$1" limit="$2" start="$SECONDS" status=0 last
  shift 2
  timeout --signal=INT --kill-after=10 "$limit" "$@" >"$out/$name.log" 2>&1 || status=$?
  last="$(tail -n 1 "$out/$name.log" | clean)"
  verdicts+=("\"$name\": {\"status\": $status, \"seconds\": $((SECONDS - start)), \"said\": \"$last\"}")
  echo "$name: status $status after $((SECONDS - start)) s: $last"
  return "$status"
}

pytest=("$python" -m pytest -q -p no:cacheprovider)
if "$python" -c 'import xdist' 2>/dev/null; then parallel=(-n "$workers"); else parallel=(); fi
on_gpu="$("$python" -c 'import sys; sys.path.insert(0, "tools"); import run_tests; print(*run_tests.ON_EMULATOR)')"
report='import needle; print(needle.device_report()); assert needle.cuda().enabled(), "cuda() is not enabled"'

failed=0
step build 180 "$python" tools/build_native.py cpu cuda || failed=1
if [ "$failed" = 0 ]; then
  step devices 20 env PYTHONPATH=python "$python" -c "$report" || failed=1
fi
if [ "$failed" = 0 ]; then
  step benchmark 60 "$python" -m benchmarks.gpu --out "$out/results.json" || failed=1
  cp "$out/benchmark.log" "$out/table.txt"
  # shellcheck disable=SC2086 # a list of files
  step core 80 env NEEDLE_TEST_DEVICE=cuda "${pytest[@]}" "${parallel[@]}" $on_gpu || failed=1
  for stage in hw3 hw4 hw4_extra; do
    step "$stage" 40 "${pytest[@]}" "tests/$stage" -k cuda || failed=1
  done
fi

compiler="$( (nvcc --version || /usr/local/cuda/bin/nvcc --version) 2>/dev/null | tail -n 1 | clean)"
commit="$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
{
  printf '{"card": "%s", "nvcc": "%s", "python": "%s", "commit": "%s", "seconds": %d, "steps": {' \
    "$(clean <<<"$card")" "$compiler" "$("$python" --version | clean)" "$commit" "$SECONDS"
  (IFS=, && printf '%s' "${verdicts[*]}")
  printf '}}\n'
} >"$out/summary.json"
"$python" -m json.tool "$out/summary.json"
[ ! -f "$out/table.txt" ] || cat "$out/table.txt"
exit "$failed"
