#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Policies from outside, at the program's surface: the examples, the tutorial of docs/policies.md, what is
# installed, and files that are broken or hostile. None of them may hang, exhaust memory, leave a file, or
# end in anything but one message.
#
# usage: tests/policies.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
root=$(realpath "$(dirname "$0")/..")
azure=$root/traces/samples/azure_2023_code.csv
mooncake=$root/traces/samples/mooncake_conversation.jsonl.gz
machine="--model deepseek-v3.2 --cluster b200x8"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

compile() { ${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror -O2 -shared -fPIC -I "$root/sim/include" "$1" -o "$2"; }
sim() { "$program" sim "$azure" $machine "$@"; }
# A run's JSON without its policy's name and the time it took.
result() {
    local policy=$1
    "$program" sim "${@:2}" $machine --policy "$policy" --json - |
        sed "s#$policy#POLICY#" | grep -v -e sim_wall_s -e '"exact"'
}

## the examples: C and Lua agree, and with the built-in where there is one
for name in greedy dwell queue splash; do
    expect "$name.c compiles" 0 "$(compile "$root/docs/policies/$name.c" $name.so; echo $?)"
    cp "$root/docs/policies/$name.lua" .
done
"$program" gen agentic -n 30 -o synthetic.wtt >/dev/null 2>&1
for trace in "$mooncake" synthetic.wtt; do
    for options in "" :margin=0.02,dwell_ms=50,persist=2,return_margin=0.1 :margin=0,charge=1,mechanism=blocking; do
        result splash$options "$trace" >built_in.json
        for file in ./splash.so ./splash.lua; do
            expect "$file$options: the built-in's bytes ($(basename "$trace"))" \
                "$(md5sum <built_in.json)" "$(result $file$options "$trace" | md5sum)"
        done
    done
done
expect "the runs compared are runs" 1 "$(grep -c '"switches": [1-9][0-9]*,' built_in.json | sed 's/[1-9][0-9]*/1/')"
for policy in greedy dwell:dwell_ms=20 queue:admit=9; do
    name=${policy%%:*} options=${policy#"$name"}
    for exact in "" --exact; do
        expect "$policy $exact: C and Lua give the same bytes" \
            "$(result ./$name.so$options "$mooncake" --limit 1500 $exact | md5sum)" \
            "$(result ./$name.lua$options "$mooncake" --limit 1500 $exact | md5sum)"
    done
done
expect "queue: a cap of one serves one at a time" 1 "$(result ./queue.lua:admit=1 "$azure" --limit 50 >a.json
    sim --limit 50 --policy fixed:tp --max-running 1 --json b.json >/dev/null
    a=$(sed -n 's/^ *"makespan_s": \([0-9]*\).*/\1/p' a.json) b=$(sed -n 's/^ *"makespan_s": \([0-9]*\).*/\1/p' b.json)
    [ "${a:-x}" -le "${b:-y}" ] && echo 1)"

## related systems
for policy in flying shift loong drain-restart; do
    expect "$policy: jumps give the bytes of single steps" \
        "$(result $policy "$mooncake" --limit 1500 | md5sum)" \
        "$(result $policy "$mooncake" --limit 1500 --exact | md5sum)"
done
expect_part "flying: needs its layouts" "put both in --layouts" "$(sim --layouts tp,cp --policy flying 2>&1)"

## the tutorial of docs/policies.md: its files and its commands
page=$root/docs/policies.md
block() { awk -v name="$1" '$0 == "<!-- " name " -->" { want = 1; next } /^```/ { inside = want && !inside;
    if (!inside && seen) exit; next } inside { seen = 1; print }' "$page"; }
block mine.lua >mine.lua
block mine.c >mine.c
expect "the tutorial has both files" 1 "$([ -s mine.lua ] && [ -s mine.c ] && echo 1)"
expect "twenty lines: Lua" 1 "$([ "$(wc -l <mine.lua)" -le 20 ] && echo 1)"
mkdir bin
ln -s "$program" bin/wavetank
while read -r command; do
    expect "docs/policies.md: $command" 0 "$(PATH=$work/bin:$PATH TRACE=$mooncake C_INCLUDE_PATH=$root/sim/include \
        bash -ec "$command" >out.txt 2>&1 </dev/null; echo $?)"
done < <(block commands)
expect_part "docs/policies.md: its last command is a run" "./mine.so" "$(cat out.txt)"
expect "the tutorial's C and Lua agree" "$(result ./mine.so "$azure" | md5sum)" "$(result ./mine.lua "$azure" | md5sum)"

## installed: header and pkg-config file
make -s -C "$root" B="$(dirname "$(dirname "$program")")" DESTDIR="$work/dest" PREFIX=/usr install-policy >/dev/null 2>&1
expect "make install: header" "$(cat "$root/sim/include/wavetank/policy.h")" "$(cat dest/usr/include/wavetank/policy.h)"
expect_part "make install: pkg-config file" "Cflags: -I\${includedir}" "$(cat dest/usr/lib/pkgconfig/wavetank.pc)"

## hostile files: exit code and message, and nothing left behind
# hostile FILE CODE PART: the run under FILE ends with this exit code and says this on stderr.
hostile() {
    local code
    said=$( (ulimit -v "$room_kib"; timeout 30 "$program" sim "$azure" $machine --limit 20 --policy "$1" \
        --json "$work/left/out.json") 2>&1 >/dev/null)
    code=$?
    expect "$1: exit code ($said)" "$2" "$code"
    expect_part "$1: message" "$3" "$said"
    expect "$1: one line" 1 "$(printf '%s\n' "$said" | wc -l)"
    expect "$1: nothing left" "" "$(ls left)"
    rm -f left/*
}
mkdir left
room_kib=2000000
grep -q __asan_init "$program" && room_kib=unlimited # its shadow alone is larger

# Lua: what stands in decide, the exit code and a part of the message, one a line.
i=0
while IFS='|' read -r what part body; do
    i=$((i + 1))
    printf 'local function decide(view)\n%s\nend\nreturn {decide = decide}\n' "$body" >"h$i-$what.lua"
    hostile "./h$i-$what.lua" 1 "$part"
    expect_part "$what: says the step" "(step 0)" "$said"
done <<'EOF'
raise|sour|error("sour")
nonsense|is not in --layouts|return "no such"
number|count from 1 to|return 1e300
loop|more than 1000000 instructions|while true do end
goto|more than 1000000 instructions|::again:: goto again
recursion|stack overflow|local function f() return 1 + f() end f()
tail|more than 1000000 instructions|local function f() return f() end f()
execute|attempt to index global 'os'|os.execute("touch left/escaped")
open|attempt to index global 'io'|io.open("left/escaped", "w")
require|attempt to call global 'require'|require("ffi").C.system("touch left/escaped")
ffi|attempt to index global 'ffi'|ffi.cdef("int system(const char *);")
load|attempt to call global 'loadstring'|loadstring("\27LJ")()
dump|attempt to call field 'dump'|string.dump(function() end)
dofile|attempt to call global 'dofile'|dofile("/etc/passwd")
debug|attempt to index global 'debug'|debug.sethook()
jit|attempt to index global 'jit'|jit.on()
getfenv|attempt to call global 'getfenv'|getfenv(0).x = 1
proxy|attempt to call global 'newproxy'|newproxy(true)
package|attempt to index global 'package'|package.loadlib("x", "*")
collect|attempt to call global 'collectgarbage'|collectgarbage("stop")
pcall|attempt to call global 'pcall'|while true do pcall(function() while true do end end) end
xpcall|attempt to call global 'xpcall'|xpcall(error, function() while true do end end)
coroutine|attempt to index global 'coroutine'|coroutine.wrap(function() while true do end end)()
rep|string.rep: more than|local s = string.rep("x", 2e9)
method|string.rep: more than|local s = ("x"):rep(1e15)
metatable|attempt to index a boolean|getmetatable("").__index.rep = nil
doubling|more than 64 MiB of memory|local s = "x" while true do s = s .. s end
tables|more than|local t = {} while true do t = {t, {}, {}, {}, {}, {}, {}, {}} end
concat|more than 64 MiB of memory|local t = {} for i = 1, 4096 do t[i] = ("x"):rep(65536) end return table.concat(t)
gsub|more than|local s = ("x"):rep(1048576) for i = 1, 9 do s = s:gsub("x", "xxxxxxxxxxxxxxxx") end
unpack|too many results|return unpack({}, 1, 1e8)
sort|more than 1000000 instructions|local t = {} for i = 1, 50000 do t[i] = -i end table.sort(t, function(a, b) for i = 1, 99 do end return a < b end)
index|stack overflow|return setmetatable({}, {__index = function(t, k) return t[k] end}).x + (function() while true do end end)()
view|attempt to|view.layouts = nil view.leads = nil return view:leads(1, 2)
fields|is not in --layouts|for k in pairs(view) do view[k] = nil end setmetatable(view, {__newindex = error}) return "still here"
finalizer|sour|setmetatable({}, {__gc = function() while true do end end}) error("sour")
separator|string.rep: more than|return ("x"):rep(1e5, ("y"):rep(1e5))
tostring|more than 1000000 instructions|local t = {} setmetatable(t, {__tostring = function(t) return tostring(t) end}) tostring(t)
nested|string.gsub: nested more than 32 deep|local function f() return (("x"):gsub("x", f)) end f()
hidden|more than 1000000 instructions|return setmetatable({}, {__index = function() while true do end end}).x
pattern|no answer within 5 s|return (("a"):rep(60000)):find((".-"):rep(30) .. "b")
EOF
printf '\033LJ\002\012' >bytecode.lua
hostile ./bytecode.lua 2 "bytecode.lua"
hostile ./none.lua 2 "cannot be read"
printf 'return {decide = function() end, init = function() while true do end end}\n' >init.lua
hostile ./init.lua 2 "more than 1000000 instructions"
printf 'local function decide() return 2 end\nreturn {decide = decide, switched = function() error("late") end}\n' >late.lua
hostile ./late.lua 1 "late"

# Shared objects: the body of decide.
native() {
    cat >"$1.c" <<EOF
#include <stdlib.h>
#include <wavetank/policy.h>
static int keep;
static void *init(const struct wavetank_setup *s, char *e, size_t n) { (void)s, (void)e, (void)n; return &keep; }
int deep(volatile int *p);
int deep(volatile int *p) { volatile int x[1000]; x[0] = *p; return deep(x) + x[1]; }
static void decide(void *state, const struct wavetank_view *v, struct wavetank_decision *out)
{
    (void)state, (void)v, (void)out;
    if (v->step < 3) return;
    $4
}
const struct wavetank_policy *wavetank_policy(void)
{
    static const struct wavetank_policy p = {WAVETANK_POLICY_ABI, sizeof p, init, 0, decide, 0, 0, 0};
    return &p;
}
EOF
    ${CC:-cc} -w -O1 -shared -fPIC -I "$root/sim/include" "$1.c" -o "$1.so"
    hostile "./$1.so" "$2" "$3"
}
native segv 1 "invalid memory access in decide (step 3)" '*(volatile int *)8 = 1;'
native fpe 1 "arithmetic fault in decide (step 3)" 'volatile int one = 1, zero = 0; out->layout = one / zero;'
native abort 1 "abort in decide (step 3)" 'abort();'
native exit 1 "exit in decide (step 3)" 'exit(0);'
native stack 1 "invalid memory access in decide (step 3)" 'out->layout = deep(&keep);'
native loop 1 "no answer within 5 s in decide (step 3)" 'for (;;) keep++;'
native layout 1 "decide chose layout 17, which there is not (step 3)" 'out->layout = 17;'
native hold 1 "a hold of -5 steps: 1 is the least (step 3)" 'out->hold = -5;'
native wanted 1 "decide wanted layout -2, which there is not (step 3)" 'out->wanted = -2;'
native error 1 "not today (step 3)" 'out->error = "not today";'
echo 'int x;' >empty.c && ${CC:-cc} -shared -fPIC empty.c -o empty.so
hostile ./empty.so 2 "no wavetank_policy() in it"
sed 's/{WAVETANK_POLICY_ABI,/{99,/' error.c >abi.c && ${CC:-cc} -w -shared -fPIC -I "$root/sim/include" abi.c -o abi.so
hostile ./abi.so 2 "made for version 99"
sed 's/sizeof p, init, 0, decide/sizeof p, init, 0, 0/' error.c >half.c &&
    ${CC:-cc} -w -shared -fPIC -I "$root/sim/include" half.c -o half.so
hostile ./half.so 2 "lacks size, init or decide"
echo 'no object' >text.so
hostile ./text.so 2 "cannot be loaded"
hostile ./dwell.so:dwel=3 2 'no option "dwel"'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
