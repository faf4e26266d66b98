#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# embed.sh FILE...: a C file on standard output that holds the files as asset.h's table, each under its
# own name. The assembler reads them, so a megabyte costs the compiler nothing.
set -eu

type_of() {
    case $1 in
    *.html) echo 'text/html; charset=utf-8' ;;
    *.css) echo 'text/css; charset=utf-8' ;;
    *.js) echo 'text/javascript; charset=utf-8' ;;
    *.json) echo 'application/json' ;;
    *.svg) echo 'image/svg+xml' ;;
    *) echo 'text/plain; charset=utf-8' ;;
    esac
}

echo '/* Made by sim/web/embed.sh. */'
echo '#include "sim/web/asset.h"'
n=0
for file; do
    echo "extern const unsigned char asset_data_$n[];"
    printf '__asm__(".section .rodata\\n.globl asset_data_%d\\nasset_data_%d:\\n"\n' $n $n
    printf '        ".incbin \\"%s\\"\\n.byte 0\\n.previous\\n");\n' "$file"
    n=$((n + 1))
done
echo 'const struct asset assets[] = {'
n=0
for file; do
    printf '    {"%s", "%s", asset_data_%d, %d},\n' "${file##*/}" "$(type_of "$file")" $n "$(wc -c <"$file")"
    n=$((n + 1))
done
echo '    {0},'
echo '};'
