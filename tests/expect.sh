# SPDX-License-Identifier: Apache-2.0
#
# What test scripts count by; sourced. They print "$passed passed, $failed failed" at the end.
passed=0 failed=0

# expect CASE EXPECTED ACTUAL: the two texts are equal.
expect() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s\n' "$1"
        diff <(printf '%s\n' "$2") <(printf '%s\n' "$3")
    fi
}

# expect_part CASE PART TEXT: the text has the part.
expect_part() {
    case $3 in
    *"$2"*) expect "$1" "$2" "$2" ;;
    *) expect "$1" "... $2 ..." "$3" ;;
    esac
}

skip() { echo "skipped: $*"; }
widest() { awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }'; }
