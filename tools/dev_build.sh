#!/usr/bin/env bash
# Builds the extension module into the source tree, for development. Usage: tools/dev_build.sh [python] [extra cmake flags]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
shift || true
bin=$(dirname "$(command -v "$python")")
export PATH="$bin:$PATH"
mkdir -p build
# One compiler cache serves every work tree: paths in it are relative to the tree.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S . -B build/dev -G Ninja -DPython_EXECUTABLE="$(command -v "$python")" -DSAMPAN_IN_PLACE=ON "${launcher[@]}" "$@" >build/dev.log 2>&1 || { cat build/dev.log; exit 1; }
nice cmake --build build/dev
