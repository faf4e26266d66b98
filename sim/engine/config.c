/* SPDX-License-Identifier: Apache-2.0
 *
 * What the options of a run may say together.
 */
#include "sim/engine/engine.h"

int64_t engine_config_pages(const struct engine_config *c)
{
    return c->kv_blocks > 0 ? c->kv_blocks : c->kv_tokens / c->page_tokens;
}

int engine_config_check(const struct engine_config *c, struct err *err)
{
    if (c->kv_tokens > 0 && c->kv_blocks > 0)
        return err_set(err, "--kv-tokens, --kv-blocks: both say the same; give one of them");
    if (c->kv_tokens > 0 && c->kv_tokens < c->page_tokens)
        return err_set(err, "--kv-tokens: %lld tokens are less than a page of %lld (--page-tokens)",
                       (long long)c->kv_tokens, (long long)c->page_tokens);
    return 0;
}
