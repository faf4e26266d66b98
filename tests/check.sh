#!/usr/bin/env bash
# What the house rules ask of the source: format, include directions, sizes, static analysis.
set -uo pipefail
bad=0
fail() { echo "check: $*" >&2; bad=1; }
mapfile -t sources < <(git ls-files '*.c' '*.h')
mapfile -t code < <(git ls-files 'sim/*.c' 'hw/*.c' 'traces/*.c' 'workloads/*.c')

clang-format --dry-run -Werror "${sources[@]}" || fail "run: clang-format -i FILE"

# Arrows point down: what a folder may include besides itself.
may_include() {
    case $1 in
    sim/base) echo 'sim/base' ;;
    hw | traces) echo 'sim/base' ;;
    workloads) echo 'sim/base|traces' ;;
    sim/layout) echo 'sim/base|hw' ;;
    sim/plan) echo 'sim/base' ;;
    sim/cost) echo 'sim/base|hw|sim/layout' ;;
    sim/policy) echo 'sim/base|hw|sim/layout|sim/cost' ;;
    sim/engine) echo 'sim/base|hw|sim/layout|sim/cost|sim/policy' ;;
    sim/study | sim/report) echo 'sim/base|hw|sim/layout|sim/cost|sim/policy|sim/engine|sim/plan|traces' ;;
    sim/cmd) echo 'sim|hw|traces|workloads' ;;
    replay) echo 'sim/base|sim/layout|sim/plan|hw|kernels' ;;
    kernels) echo 'kernels' ;;
    esac
}
for folder in sim/base hw traces workloads sim/layout sim/plan sim/cost sim/policy sim/engine \
    sim/study sim/report sim/cmd replay kernels; do
    files=$(git ls-files "$folder/*.c" "$folder/*.h" "$folder/*.cu")
    [ -n "$files" ] || continue
    # shellcheck disable=SC2086
    grep -nE '^#include "' $files | grep -vE "#include \"($folder|$(may_include $folder))/[^\"]*\"" &&
        fail "$folder may include only itself and: $(may_include $folder | tr '|' ' ')"
done

wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 500 {print "check: " $2 ": " $1 " lines, more than 500"; bad = 1} END {exit bad}' >&2 || bad=1

flags=(-std=c17 -D_POSIX_C_SOURCE=200809L -I.)
printf '%s\n' "${code[@]}" | xargs -P "$(nproc)" -n 4 bash -c '
    clang-tidy --quiet --warnings-as-errors="*" "$@" -- -std=c17 -D_POSIX_C_SOURCE=200809L -I. 2>&1 |
        grep -vE "warnings? (generated|treated as errors)|^Suppressed|^Use -header-filter"
    exit "${PIPESTATUS[0]}"' _ || fail "clang-tidy"
cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr --enable=warning,performance,portability \
    --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches -j "$(nproc)" \
    "${flags[@]:1}" "${code[@]}" || fail "cppcheck"

[ "$bad" -eq 0 ] && echo "check: ${#sources[@]} files, ok"
exit "$bad"
