/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/digest.h"

#include <stdio.h>
#include <string.h>

static unsigned __int128 wide(uint64_t high, uint64_t low)
{
    return (unsigned __int128)high << 64 | low;
}

void digest_init(struct digest *d)
{
    d->state = wide(0x6c62272e07bb0142, 0x62b821756295c58d);
}

void digest_bytes(struct digest *d, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    const unsigned __int128 prime = wide(1 << 24, 0x13b);
    for (size_t i = 0; i < n; i++)
        d->state = (d->state ^ b[i]) * prime;
}

void digest_text(struct digest *d, const char *text)
{
    digest_bytes(d, text, strlen(text) + 1);
}

void digest_u64(struct digest *d, uint64_t x)
{
    unsigned char b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)(x >> 8 * i);
    digest_bytes(d, b, sizeof b);
}

char *digest_hex(const struct digest *d, char hex[DIGEST_HEX_SIZE])
{
    snprintf(hex, DIGEST_HEX_SIZE, "%016llx%016llx", (unsigned long long)(d->state >> 64),
             (unsigned long long)d->state);
    return hex;
}
