/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/chain.h"

int chain_add(struct trace *t, struct chain *c, const struct turn *turn, struct err *err)
{
    int added = c->begun ? trace_add_waiting(t, turn->wait_ps, turn->input_tokens,
                                             turn->output_tokens, turn->line, err)
                         : trace_add(t, c->start_ps, turn->input_tokens, turn->output_tokens,
                                     turn->line, err);
    if (added <= 0)
        return added;
    if (c->begun) {
        trace_wait_for(t, c->last);
        t->noted[NOTE_SHRUNK] += turn->input_tokens < t->request[c->last].input_tokens;
    }
    c->begun = true;
    c->last = t->n - 1;
    return 1;
}
