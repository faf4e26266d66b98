#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wavetank serve from outside: the API, what it refuses and survives, tokens, and a kill -9 with runs under
# way. The pages are tests/browser.
#
# usage: tests/serve.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
repo=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work" || exit 2
export WAVETANK_DATA=$repo
# A sanitizer's address space knows no limits.
memory=4096
(ulimit -v 4194304 && exec env ASAN_OPTIONS= "$program" --version) >/dev/null 2>&1 || memory=0

# start DATA OPTION...: sets $server and $url.
start() {
    local data=$1
    shift
    rm -f out
    "$program" serve --port 0 --data "$data" --worker-mib "$memory" "$@" >out 2>err &
    server=$!
    for _ in $(seq 100); do
        [ -s out ] && break
        sleep 0.1
    done
    url=$(sed -n 's|/  .*||p' out)
}
stop() { # SIGNAL
    kill "$1" "$server"
    wait "$server" 2>/dev/null
    server=
}
json='Content-Type: application/json'
bytes='Content-Type: application/octet-stream'
get() { curl -s "$url$1"; }
post() { curl -s -H "$json" -d "$2" "$url$1"; }
# code METHOD PATH CURL-OPTION...: the status only.
code() {
    local method=$1 path=$2
    shift 2
    curl -s -o /dev/null -m 20 -w '%{http_code}' --path-as-is -X "$method" "$@" "$url$path"
}
value() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" <<<"$2" | head -1; }
state() { value state "$(get "$1")"; }
# until STATE PATH: waits for it, 30 s at most; prints what it is then.
until_state() {
    for _ in $(seq 300); do
        [ "$(state "$2")" = "$1" ] && break
        sleep 0.1
    done
    state "$2"
}
scenario='"scenario":{"model":"deepseek-v3.2","cluster":"b200x8","limit":50,"policy":["fixed:tp","splash"]}'
short="{\"trace\":\"sample:azure_2023_code.csv\",$scenario}"
# Some twenty seconds of work: sixteen policies, step by step.
margins=$(printf '"splash:margin=0.%02d",' $(seq 16))
long="{\"trace\":\"sample:mooncake_conversation.jsonl.gz\",\"scenario\":{\"model\":\"deepseek-v3.2\",\"cluster\":\"b200x8\",\"exact\":true,\"rate\":0.05,\"policy\":[${margins%,}]}}"
alive() { expect "$1: the server lives" ok "$(get /healthz)"; }

command -v curl >/dev/null || { echo "serve.sh needs curl (tests/deps.sh test)"; exit 2; }
start data --queue 4 --request-s 2 --upload-mib 2

## the API
expect "healthz" ok "$(get /healthz)"
expect_part "choices" '"b200x8"' "$(get /api/choices)"
run=$(value id "$(post /api/runs "$short")")
expect "a run ends" done "$(until_state done "/api/runs/$run")"
expect_part "a run's default name" '"name":"deepseek-v3.2 on b200x8, azure_2023_code.csv"' "$(get "/api/runs/$run")"
get "/api/runs/$run/files/result.json" >served.json
"$program" sim "$repo/traces/samples/azure_2023_code.csv" --model deepseek-v3.2 --cluster b200x8 --limit 50 \
    --policy fixed:tp --policy splash --json direct.json >/dev/null
plain() { grep -v -e sim_wall_s -e '"path"' "$1"; }
expect "the result is the command's own" "$(plain direct.json)" "$(plain served.json)"
expect "results name no path of the server's" '    "path": "azure_2023_code.csv",' "$(grep '"path"' served.json)"
expect "requests.csv: a row per request and policy" 101 "$(get "/api/runs/$run/files/requests.csv" | wc -l)"
expect_part "tables.txt" "fixed:tp" "$(get "/api/runs/$run/files/tables.txt")"
expect "scenario.json: what was asked for" '"model": "deepseek-v3.2"' \
    "$(get "/api/runs/$run/files/scenario.json" | grep -o '"model": [^,]*')"
expect_part "no report unless asked for" 'order one with' "$(get "/api/runs/$run/files/report.html")"
expect "nor is one listed" 0 "$(get "/api/runs/$run" | grep -c 'report.html\|timeline.json')"
expect_part "events of a run that has ended" 'event: state' "$(get "/api/runs/$run/events")"

## files on request
one_policy=${short/\"fixed:tp\",}
pages=$(value id "$(post /api/runs "${one_policy/\{/\{\"report\":true,\"timeline\":true,}")")
expect "a run with a report and a timeline" done "$(until_state done "/api/runs/$pages")"
expect "both are listed" 2 "$(get "/api/runs/$pages" | grep -o '"name":"\(report.html\|timeline.json.gz\)"' | wc -l)"
get "/api/runs/$pages/files/report.html" >served.html
"$program" sim "$repo/traces/samples/azure_2023_code.csv" --model deepseek-v3.2 --cluster b200x8 --limit 50 \
    --policy splash --timeline direct.json.gz >/dev/null
expect "the timeline is the command's own" "$(gzip -dc direct.json.gz | cksum)" \
    "$(curl -s "$url/api/runs/$pages/files/timeline.json.gz" | gzip -dc | cksum)"
expect_part "the report tells a command that its reader can type" \
    'wavetank sim azure_2023_code.csv --scenario scenario.json' "$(cat served.html)"
expect "and no path of the server's" 0 "$(grep -c -F -e "$work" -e "$repo" served.html)"
expect "a worker's leftovers go with its run" "204 0" \
    "$(touch "data/runs/$pages/.report.html.x1"; code DELETE "/api/runs/$pages") $(find data -path "*$pages*" | wc -l)"
expect "but not the trace that it linked to" yes "$([ -s "$repo/traces/samples/azure_2023_code.csv" ] && echo yes)"
many=$(value id "$(post /api/runs "${short/\{/\{\"timeline\":true,}")")
expect "a timeline of two policies" failed "$(until_state failed "/api/runs/$many")"
expect_part "says what it needs" "exactly one --policy" "$(get "/api/runs/$many")"

## lists, comparisons, deletion
expect_part "runs are listed" "$run" "$(get /api/runs)"
expect "the next list: those before" "$run" "$(get "/api/runs?before=$many" | grep -o '"id":"[^"]*"' | cut -d'"' -f4)"
expect "before the oldest there is none" '{"runs":[]}' "$(get "/api/runs?before=$run")"
expect "nor before what is none" '{"runs":[]}' "$(get "/api/runs?before=%27%20OR%201")"
other=$(value id "$(post /api/runs "${short/\{/\{\"name\":\"other\",}")")
expect "a second run" done "$(until_state done "/api/runs/$other")"
expect "compare" 2 "$(get "/api/compare?ids=$run,$other" | grep -o '"result":{' | wc -l)"
expect "delete" 204 "$(code DELETE "/api/runs/$other")"
expect "deleted" "404 0" "$(code GET "/api/runs/$other") $(find data -path "*$other*" | wc -l)"
expect_part "metrics" 'wavetank_jobs_total{state="done"} 3' "$(get /metrics)"

## every key that the server takes is an option of `sim` (null leaves an option alone)
get /api/about | sed 's/.*"options":\[//; s/\].*//' | tr , '\n' >keys
expect "keys of scenarios" 35 "$(grep -c . keys)"
nulls=$(sed -n '/"model"\|"cluster"\|"limit"\|"policy"/!s/$/:null/p' keys | paste -sd,)
all=$(value id "$(post /api/runs "${short/\"limit\"/$nulls,\"limit\"}")")
expect "sim knows them" done "$(until_state done "/api/runs/$all")"

## every path of docs/openapi.json answers
sed -n 's|^    "\(/[^"]*\)": {$|\1|p' "$repo/docs/openapi.json" >paths
expect "openapi.json is served" "$(cat "$repo/docs/openapi.json")" "$(get /api/openapi.json)"
while read -r path; do
    path=${path//\{id\}/$run}
    expect "$path is known" "" "$(get "${path//\{name\}/tables.txt}" | grep -o 'nothing at this path')"
done <paths

## uploads
upload=$(value id "$(post /api/traces '{"name":"mine.csv"}')")
expect "a part" 200 "$(code PUT "/api/traces/$upload/parts/0" -H "$bytes" -T "$repo/traces/samples/vidur_splitwise_conv.csv")"
expect "an open upload is no trace yet" 400 "$(code POST /api/runs -H "$json" -d "${short/sample:azure_2023_code.csv/$upload}")"
post "/api/traces/$upload/check" '{}' >/dev/null
expect "an upload is checked" done "$(until_state done "/api/traces/$upload")"
mine=$(value id "$(post /api/runs "${short/sample:azure_2023_code.csv/$upload}")")
expect "an upload runs" done "$(until_state done "/api/runs/$mine")"
bad=$(value id "$(post /api/traces '{}')")
head -c 1000 /dev/urandom | curl -s -o /dev/null -H "$bytes" -T - "$url/api/traces/$bad/parts/0"
post "/api/traces/$bad/check" '{}' >/dev/null
expect "an upload that is no trace" failed "$(until_state failed "/api/traces/$bad")"
drawn=$(value id "$(post /api/traces '{"preset":"mixed-chat","count":3}')")
[ -n "$drawn" ] || drawn=$(value id "$(post /api/traces '{"preset":"claude-code","count":3}')")
expect "a preset is drawn" done "$(until_state done "/api/traces/$drawn")"
full=$(value id "$(post /api/traces '{"name":"big"}')")
head -c 1048576 /dev/zero >part
expect "part 1 before part 0" 400 "$(code PUT "/api/traces/$full/parts/1" -H "$bytes" -T part)"
expect "parts up to the limit" "200 200 400" "$(for n in 0 1 2; do code PUT "/api/traces/$full/parts/$n" -H "$bytes" -T part; echo; done | xargs)"

## refusals
refused() { expect "$1" "$2" "$(code "${@:3}")"; }
refused "no such path" 404 GET /nothing
refused "no such method" 405 PUT /api/runs -d x
refused "no JSON" 400 POST /api/runs -H "$json" -d '{"trace":'
refused "no JSON type" 415 POST /api/runs -d "$short"
refused "multipart" 415 POST /api/traces -F 'file=@served.json;type=text/plain'
refused "malformed multipart" 415 POST /api/traces -H 'Content-Type: multipart/form-data; boundary=x' -d '--x--y'
refused "report: no truth value" 400 POST /api/runs -H "$json" -d "${short/\{/\{\"report\":\"x.html\",}"
refused "an unknown key" 400 POST /api/runs -H "$json" -d "${short/\{/\{\"extra\":1,}"
for pair in '"model":"../../etc/passwd"' '"model":"./mine.json"' '"cluster":"/etc/passwd"' '"profile":"./p.json"' \
    '"policy":["./mine.so"]' '"policy":["splash:trace=/tmp/x"]' '"policy":["mine.so"]' '"json":"x.json"' \
    '"plan":"x"' '"requests":"x.csv"' '"scenario":"x.json"' '"layouts":"../x"'; do
    refused "$pair" 400 POST /api/runs -H "$json" \
        -d "{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{\"model\":\"deepseek-v3.2\",\"cluster\":\"b200x8\",$pair}}"
done
refused "a trace by path" 400 POST /api/runs -H "$json" -d "${short/sample:azure_2023_code.csv//etc/passwd}"
refused "a sample by path" 400 POST /api/runs -H "$json" -d "${short/azure_2023_code.csv/..\/README.md}"
for path in /api/runs/../../etc/passwd /assets/../../../etc/passwd /assets/%2e%2e%2fpage.js \
    "/api/runs/$run/files/../scenario.json" "/api/runs/$run/files/%2e%2e%2fjobs.db" "/api/runs/$run/files/log.txt" \
    /api/runs/00000000000000000000000000000000 //etc/passwd; do
    refused "$path" 404 GET "$path"
done
refused "another site's page" 403 POST /api/runs -H "$json" -H 'Sec-Fetch-Site: cross-site' -d "$short"
refused "another host's name" 403 GET /api/runs -H 'Host: example.org'
refused "headers without end" 400 GET /healthz -H "X-Long: $(head -c 20000 /dev/zero | tr '\0' x)"
refused "a path without end" 414 GET "/$(head -c 2000 /dev/zero | tr '\0' x)"
truncate -s 1G giant
# The server answers 413 and hangs up; a client that still sends may see only the latter (curl's 000).
too_large() {
    case $(code PUT "/api/traces/$full/parts/0" -H "$bytes" -H 'Expect:' -T giant "${@:2}") in
    *413 | 000) expect "$1: refused" yes yes ;;
    *) expect "$1: refused" "413, or no answer" other ;;
    esac
}
too_large "1 GiB at once"
too_large "1 GiB in chunks" -H 'Transfer-Encoding: chunked'
printf 'GET / HTTP/9.9\r\n\r\n\0\0\0\r\nPUT' | timeout 3 bash -c "cat >/dev/tcp/${url#http://} 2>/dev/null" 2>/dev/null
alive "refusals"
expect_part "headers of every answer" "script-src 'self'" "$(curl -si "$url/nothing")"

# One byte a second never ends a request: the server does.
slow() {
    exec 3<>"/dev/tcp/127.0.0.1/${url##*:}" || return
    local began=$SECONDS
    printf 'GET /healthz HTTP/1.1\r\n' >&3
    while [ $((SECONDS - began)) -lt 10 ] && printf 'X' >&3 2>/dev/null; do
        read -r -t 1 -u 3 _ && break
        [ $? -gt 128 ] || break
    done
    exec 3<&-
    [ $((SECONDS - began)) -lt 8 ] && echo dropped || echo "kept for $((SECONDS - began)) s"
}
expect "slowloris" dropped "$(slow 2>/dev/null)"
expect_part "it was counted" "wavetank_connections_dropped_total 1" "$(get /metrics)"
expect "connections are counted" 1 "$(get /metrics | grep -c '^wavetank_connections [1-9]')"

## cancel, a crash, a full queue
one=$(value id "$(post /api/runs "$long")")
two=$(value id "$(post /api/runs "$long")")
expect "it runs" running "$(until_state running "/api/runs/$one")"
expect_part "progress is told" "event: progress" "$(timeout 30 curl -sN "$url/api/runs/$one/events" | grep -m1 progress)"
three=$(value id "$(post /api/runs "$long")")
expect "it waits" queued "$(state "/api/runs/$three")"
timeout 4 curl -sN "$url/api/runs/$three/events" >waited
expect "who watches may be silent for longer than a request takes" 124 $?
refused "a run that goes on is not deleted" 409 DELETE "/api/runs/$one"
post "/api/runs/$three/cancel" '{}' >/dev/null
expect "cancelled while it waits" cancelled "$(until_state cancelled "/api/runs/$three")"
post "/api/runs/$one/cancel" '{}' >/dev/null
expect "cancelled while it runs" cancelled "$(until_state cancelled "/api/runs/$one")"
refused "cancelled twice" 409 POST "/api/runs/$one/cancel" -H "$json" -d '{}'
crash=$(pgrep -P "$server" | head -1)
kill -ABRT "$crash"
expect "a worker that crashes fails its job" failed "$(until_state failed "/api/runs/$two")"
expect_part "and says so" "signal 6" "$(get "/api/runs/$two")"
alive "a crash"
for _ in 1 2 3 4 5 6; do post /api/runs "$long" >/dev/null; done
refused "a full queue" 429 POST /api/runs -H "$json" -d "$long"

## kill -9
get /api/runs | grep -o '"id":"[^"]*","state":"[^"]*"' | sort >before
expect "two run, four wait" "4 queued 2 running" \
    "$(grep -o 'queued\|running' before | sort | uniq -c | xargs)"
kill -9 "$server"
wait "$server" 2>/dev/null
start data --workers 1 --queue 4
get /api/runs | grep -o '"id":"[^"]*","state":"[^"]*"' | sort >after
expect "none is lost" "$(cut -d, -f1 before)" "$(cut -d, -f1 after)"
expect "what ran is marked, what waited waits or runs" "2 interrupted 3 queued 1 running" \
    "$(grep -o 'interrupted\|queued\|running' after | sort | uniq -c | xargs)"
expect "a finished run is whole" "$(cat served.json)" "$(get "/api/runs/$run/files/result.json")"
other_server=$("$program" serve --port 0 --data data 2>&1; echo $?)
expect_part "one server per folder" "another server has it open" "$other_server"
stop -TERM
expect "stopped by SIGTERM: no word" "" "$(cat err)"

## limits of workers, tokens
start data2 --worker-s 1
late=$(value id "$(post /api/runs "$long")")
expect "too much time" failed "$(until_state failed "/api/runs/$late")"
expect_part "and says so" "--worker-s" "$(get "/api/runs/$late")"
stop -TERM
if [ "$memory" -gt 0 ]; then
    memory=24
    start data2
    fat=$(value id "$(post /api/runs "$long")")
    expect "too much memory" failed "$(until_state failed "/api/runs/$fat")"
    expect_part "and says so" "out of memory" "$(get "/api/runs/$fat")"
    stop -TERM
    memory=4096
fi
expect_part "others can reach it: a token" "give a --token-file" "$("$program" serve --host 0.0.0.0 --port 0 --data d3 2>&1)"
echo "a-token-of-some-length" >token
start data3 --token-file token
auth='Authorization: Bearer a-token-of-some-length'
refused "without the token" 401 GET /api/runs
refused "with a wrong one" 401 GET /api/runs -H "${auth}x"
refused "with the token" 200 GET /api/runs -H "$auth"
refused "pages are open" 200 GET /
shared=$(value id "$(curl -s -H "$auth" -H "$json" -d "$short" "$url/api/runs")")
expect "who has a run's id sees it" done "$(until_state done "/api/runs/$shared")"
refused "but does not cancel it" 401 POST "/api/runs/$shared/cancel" -H "$json" -d '{}'
stop -TERM

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
