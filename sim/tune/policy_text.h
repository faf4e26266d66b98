/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy's text in one spelling, so that equal policies are equal text.
 */
#ifndef SIM_TUNE_POLICY_TEXT_H
#define SIM_TUNE_POLICY_TEXT_H

/* `text` ("splash:charge=1,margin=0.10") with options added, each "key=value", which win over the
 * text's own: keys with '_', numbers in their shortest form, sorted by key, a key once. A text
 * whose options are not all of that form ("fixed:dop:cache=0.25") stays as it is, the added ones
 * behind. To be freed. */
char *policy_text(const char *text, const char *const *added, int n);

#endif
