/* SPDX-License-Identifier: Apache-2.0
 *
 * FNV-1a 128 against its published test vectors.
 */
#include <criterion/criterion.h>

#include "sim/base/digest.h"

static const char *hex_of(const char *bytes, size_t n, char hex[DIGEST_HEX_SIZE])
{
    struct digest d;
    digest_init(&d);
    digest_bytes(&d, bytes, n);
    return digest_hex(&d, hex);
}

Test(digest, is_fnv_1a)
{
    char hex[DIGEST_HEX_SIZE];
    cr_expect_str_eq(hex_of("", 0, hex), "6c62272e07bb014262b821756295c58d");
    cr_expect_str_eq(hex_of("a", 1, hex), "d228cb696f1a8caf78912b704e4a8964");
    cr_expect_str_eq(hex_of("foobar", 6, hex), "343e1662793c64bf6f0d3597ba446f18");
}

Test(digest, texts_do_not_run_together)
{
    struct digest a, b;
    digest_init(&a);
    digest_text(&a, "ab");
    digest_text(&a, "c");
    digest_init(&b);
    digest_text(&b, "a");
    digest_text(&b, "bc");
    cr_expect(a.state != b.state);
}

Test(digest, a_number_is_its_bytes_least_first)
{
    struct digest a, b;
    static const char bytes[8] = {0x02, 0x01, 0, 0, 0, 0, 0, 0};
    digest_init(&a);
    digest_u64(&a, 0x0102);
    digest_init(&b);
    digest_bytes(&b, bytes, sizeof bytes);
    cr_expect(a.state == b.state);
}
