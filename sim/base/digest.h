/* SPDX-License-Identifier: Apache-2.0
 *
 * A 128-bit name for a heap of bytes: FNV-1a (G. Fowler, L. C. Noll, P. Vo; draft-eastlake-fnv).
 * It tells inputs apart that differ by chance or mistake; it is no defence against someone who
 * builds two with one digest.
 */
#ifndef SIM_BASE_DIGEST_H
#define SIM_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct digest {
    unsigned __int128 state;
};

enum { DIGEST_HEX_SIZE = 33 };

void digest_init(struct digest *d);
void digest_bytes(struct digest *d, const void *bytes, size_t n);
/* The text and its end, so that ("ab", "c") is not ("a", "bc"). */
void digest_text(struct digest *d, const char *text);
/* Eight bytes, least first, whatever the machine. */
void digest_u64(struct digest *d, uint64_t x);
/* 32 digits and the NUL, in `hex`, which is returned. */
char *digest_hex(const struct digest *d, char hex[DIGEST_HEX_SIZE]);

#endif
