#!/usr/bin/env bash
# Runs tests against a build of all of csrc/ with sanitizers. Usage: tools/sanitize.sh [address|thread] [python] [pytest arguments]
#  address: the address and undefined-behaviour sanitizers; the first report ends the run. At the end, memory that csrc/ allocated and nobody
#           can reach any more is a failure (tools/find_leaks.py); what CPython and other libraries keep is not looked at.
#  thread:  the thread sanitizer, with one OpenMP thread: it does not know libgomp's barriers. User threads and Python's lock it does know. Tests in
#           which one thread writes the elements that another reads are left out: that race is what they are about.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=address
case "${1:-}" in address | thread)
  kind=$1
  shift
  ;;
esac
python=$(command -v "${1:-python3}")
shift || true
export PATH="$(dirname "$python"):$PATH"
build=build/sanitize-$kind
mkdir -p "$build/tree"
# One compiler cache serves every work tree: paths in it are relative to the tree.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$python" -DSAMPAN_SANITIZE="$kind" -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$PWD/$build/module" \
  "${launcher[@]}" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
nice cmake --build "$build"
# The package beside the sanitized module, so that the development build in sampan/ stays as it is.
rm -rf "$build/tree/sampan"
cp -r sampan "$build/tree/"
rm -f "$build"/tree/sampan/_rt.*.so
cp "$build"/module/_rt.*.so "$build/tree/sampan/"
tree=$PWD/$build/tree
tools=$PWD/tools # processes that tests start run in other folders
if [ $# -eq 0 ]; then
  # What reaches native code: the runtime's own tests, and of the others those about memory, indices, views, bad arguments, recurrent layers,
  # optimizers and packed weights.
  if [ "$kind" = address ]; then
    set -- runtime codegen/test_forms.py codegen/test_random_kernels.py codegen/test_places.py tensor/test_views.py tensor/test_memory.py \
      tensor/test_indexing.py tensor/test_gradients.py tensor/test_hostile.py tensor/test_robustness.py nn/test_recurrent.py \
      nn/test_sparse_embedding.py optimizer/test_steps.py inference/test_predictor.py
  else
    set -- runtime/test_allocator.py runtime/test_tape.py runtime/test_dispatch.py runtime/test_plan.py \
      tensor/test_hostile.py tensor/test_memory.py inference/test_predictor.py -k "(thread or fork or once) and not another_thread_writes"
  fi
fi
cd tests
# A report may go to stderr, and the process ends at once: pytest must not hold what is written there.
tests=(pytest -p no:cacheprovider -n 0 --capture=sys)
export PYTHONPATH="$tree" PYTHONMALLOC=malloc PYTHONPERFSUPPORT=0
if [ "$kind" = thread ]; then
  export OMP_NUM_THREADS=1
  LD_PRELOAD="$(gcc -print-file-name=libtsan.so)" TSAN_OPTIONS="halt_on_error=0:exitcode=66:suppressions=$tools/thread_sanitizer.supp" \
    "${tests[@]}" "$@"
  exit
fi
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1:fast_unwind_on_malloc=1:malloc_context_size=12" \
  UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:suppressions=$tools/undefined_sanitizer.supp:log_path=$reports/report" \
  LSAN_OPTIONS="exitcode=0:log_path=$reports/report:max_leaks=0" \
  "${tests[@]}" -x "$@" || { cat "$reports"/*; exit 1; }
python3 "$tools/find_leaks.py" "$reports"
