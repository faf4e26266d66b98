#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the house rules ask of the source: format, include directions, sizes, static analysis.
set -uo pipefail
bad=0
fail() {
    echo "check: $*" >&2
    bad=1
}
find_sources() { find sim hw traces workloads replay kernels docs "$@" 2>/dev/null | sort; }
cuda=${CUDA_HOME:-/usr/local/cuda}/include
mapfile -t sources < <(find_sources tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')
mapfile -t units < <(find_sources -name '*.c')
if [ ! -e "$cuda/nccl.h" ]; then
    echo "check: no CUDA here: replay/cuda is not analysed"
    mapfile -t units < <(printf '%s\n' "${units[@]}" | grep -v '^replay/cuda/')
fi
mpi=$(mpicc --showme:compile 2>/dev/null | sed 's/-I/-isystem /g')
if ! echo '#include <mpi.h>' | mpicc -E -x c - >/dev/null 2>&1; then
    echo "check: no MPI here: sim/base/ranks_mpi.c is not analysed"
    mapfile -t units < <(printf '%s\n' "${units[@]}" | grep -v '^sim/base/ranks_mpi')
fi
mapfile -t folders < <(find_sources -name '*.[ch]' -o -name '*.cu' | xargs dirname | sort -u)
flags=(-std=c17 -D_POSIX_C_SOURCE=200809L -I. -Isim/include -isystem "$cuda" $mpi)

clang-format --dry-run -Werror "${sources[@]}" || fail "run: clang-format -i FILE"

# Arrows point down: what a folder may include besides itself.
may_include() {
    case $1 in
    sim/base) echo none ;;
    hw | traces | sim/plan) echo sim/base ;;
    workloads) echo 'sim/base|traces' ;;
    sim/layout) echo 'sim/base|hw' ;;
    sim/cost) echo 'sim/base|hw|sim/layout' ;;
    sim/policy) echo 'sim/base|hw|sim/layout|sim/cost|sim/include/wavetank' ;;
    sim/engine) echo 'sim/base|hw|sim/layout|sim/cost|sim/policy' ;;
    sim/study) echo 'sim/(base|layout|plan|cost|policy|engine)|hw|traces' ;;
    sim/pareto) echo 'sim/(base|layout)|hw' ;;
    sim/tune) echo sim/base ;;
    sim/reproduce) echo 'sim/(base|layout|cost|policy|engine|study|pareto)|hw|traces' ;;
    sim/web) echo none ;;
    sim/report) echo 'sim/(base|layout|plan|cost|policy|engine|study|tune|pareto|reproduce|web)|hw|traces' ;;
    sim/serve) echo 'sim/(base|policy|web)|hw' ;;
    sim/cmd) echo 'sim/[a-z]*|hw|traces|workloads' ;;
    replay) echo 'sim/(base|layout|plan)|hw|kernels' ;;
    replay/cuda) echo 'sim/(base|layout|plan)|hw|kernels|replay' ;;
    kernels | sim/include/wavetank | docs/policies) echo none ;;
    *) return 1 ;;
    esac
}
for folder in "${folders[@]}"; do
    if ! allowed=$(may_include "$folder"); then
        fail "$folder: a new folder; say in tests/check.sh what it may include"
    elif grep -nE '^ *# *include "' "$folder"/*.* | grep -vE "include \"($folder|$allowed)/[^/\"]*\""; then
        fail "$folder may include itself and: $allowed"
    fi
done

# clang-tidy has the limit on functions (.clang-tidy).
for file in "${sources[@]}"; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 500 ] || fail "$file: $lines lines, more than 500"
    grep -qm1 'SPDX-License-Identifier: Apache-2.0' "$file" || fail "$file: no SPDX line"
done

tidy() {
    clang-tidy --quiet --warnings-as-errors='*' "$@" 2>&1 |
        grep -vE 'warnings? (generated|treated as errors)|^Suppressed|^Use -header-filter'
    return "${PIPESTATUS[0]}"
}
export -f tidy
printf '%s\n' "${units[@]}" |
    xargs -P "$(nproc)" -I{} bash -c 'tidy "$@"' _ {} -- "${flags[@]}" || fail "clang-tidy"

# cppcheck does not read system headers: it is told what Jansson's loop is.
cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr -j "$(nproc)" \
    --enable=warning,performance,portability --suppress=missingIncludeSystem \
    --suppress=normalCheckLevelMaxBranches '-Djson_array_foreach(a,i,v)=for(;;)' \
    "${flags[@]:1:2}" "${units[@]}" || fail "cppcheck"

[ "$bad" -eq 0 ] && echo "check: ${#sources[@]} files, ok"
exit "$bad"
