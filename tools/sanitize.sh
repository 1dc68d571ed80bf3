#!/usr/bin/env bash
# Runs tests against a build with the address and undefined-behaviour sanitizers. Usage: tools/sanitize.sh [python] [pytest arguments]
# The first report ends the run. Leaks are not looked for: CPython keeps memory on purpose.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "${1:-python3}")
shift || true
export PATH="$(dirname "$python"):$PATH"
build=build/sanitize
mkdir -p "$build/tree"
# One compiler cache serves every work tree: paths in it are relative to the tree.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$python" -DSAMPAN_SANITIZE=ON -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$PWD/$build/module" \
  "${launcher[@]}" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
nice cmake --build "$build"
# The package beside the sanitized module, so that the development build in sampan/ stays as it is.
rm -rf "$build/tree/sampan"
cp -r sampan "$build/tree/"
rm -f "$build"/tree/sampan/_rt.*.so
cp "$build"/module/_rt.*.so "$build/tree/sampan/"
[ $# -gt 0 ] || set -- tests/runtime
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  PYTHONPATH="$build/tree" PYTHONMALLOC=malloc pytest -p no:cacheprovider -x "$@"
