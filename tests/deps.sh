#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Install what a target needs: deps.sh run|test|check|charts|browser|fuzz... As root (or with sudo) it installs the
# missing Debian packages; otherwise it prints the command and stops.
set -euo pipefail

missing=()
has_header() { echo "#include <$1>" | ${CC:-cc} -x c -fsyntax-only - 2>/dev/null; }
header() { has_header "$1" || missing+=("$2"); }
tool() { command -v "$1" >/dev/null || missing+=("$2"); }

links_fuzzer() {
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -fsanitize=fuzzer,address,undefined -x c -o /dev/null - 2>/dev/null
}
# Debian 12's when there is no clang to ask.
clang_major() {
    local version
    version=$(clang -dumpversion 2>/dev/null) || version=14
    echo "${version%%.*}"
}

command -v "${CC:-cc}" >/dev/null || missing+=(gcc libc6-dev)
for what in "$@"; do
    case $what in
    run)
        header jansson.h libjansson-dev
        header zlib.h zlib1g-dev
        header nlopt.h libnlopt-dev
        header luajit-2.1/lua.h libluajit-5.1-dev
        header sqlite3.h libsqlite3-dev
        header event2/event.h libevent-dev ;;
    test)
        header criterion/criterion.h libcriterion-dev
        tool curl curl
        tool pgrep procps ;;
    check)
        tool clang clang
        tool clang-format clang-format
        tool clang-tidy clang-tidy
        tool cppcheck cppcheck ;;
    charts)
        tool npm npm ;;
    browser)
        tool npm npm
        tool node nodejs
        tool chromium chromium ;;
    fuzz)
        tool clang clang
        links_fuzzer || missing+=("libclang-rt-$(clang_major)-dev") ;;
    esac
done
[ ${#missing[@]} -eq 0 ] && exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

install=(apt-get install -y --no-install-recommends "${missing[@]}")
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
if [ ${#sudo[@]} -gt 0 ] && ! { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }; then
    echo "wavetank needs: ${missing[*]}. As root, run:" >&2
    echo "    apt-get update && ${install[*]}" >&2
    exit 2
fi
if ! command -v apt-get >/dev/null; then
    echo "wavetank needs the Debian packages ${missing[*]} or their like: install them and try again" >&2
    exit 2
fi
echo "installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" "${install[@]}" -qq >/dev/null
