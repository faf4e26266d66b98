/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/requests_csv.h"

#include "sim/base/units.h"
#include "sim/report/csv_cell.h"

void requests_csv_header(FILE *out)
{
    fputs("policy,request,arrival_s,input_tokens,output_tokens,state,reason,first_token_s,finish_s,"
          "ttft_s,tpot_s,e2e_s,preemptions,cached_tokens,transfer_start_s,transfer_end_s\n",
          out);
}

/* Picoseconds as seconds, without zeros behind the last digit: "1.5", "0.000000000001", "3". */
static void print_seconds(int64_t ps, FILE *out)
{
    int digits = 12;
    int64_t frac = ps % PS_PER_S;
    fprintf(out, ",%lld", (long long)(ps / PS_PER_S));
    if (frac == 0)
        return;
    for (; frac % 10 == 0; frac /= 10)
        digits--;
    fprintf(out, ".%0*lld", digits, (long long)frac);
}

static void print_times(const struct engine_request *q, const struct request_result *r, FILE *out)
{
    print_seconds(r->first_token_ps, out);
    print_seconds(r->finish_ps, out);
    print_seconds(r->first_token_ps - r->arrival_ps, out);
    if (q->output_tokens > 1)
        print_seconds((r->finish_ps - r->first_token_ps) / (q->output_tokens - 1), out);
    else
        fputc(',', out);
    print_seconds(r->finish_ps - r->arrival_ps, out);
}

static void print_transfer(const struct request_result *r, FILE *out)
{
    if (r->transfer_end_ps == 0) {
        fputs(",,", out);
        return;
    }
    print_seconds(r->transfer_start_ps, out);
    print_seconds(r->transfer_end_ps, out);
}

void requests_csv_run(FILE *out, const char *policy, const struct engine_request *request,
                      const struct run_result *r)
{
    for (int64_t i = 0; i < r->requests; i++) {
        const struct engine_request *q = &request[i];
        const struct request_result *result = &r->request[i];
        bool completed = result->state == REQ_COMPLETED;
        csv_cell(policy, out);
        fprintf(out, ",%lld", (long long)i);
        print_seconds(result->arrival_ps, out);
        fprintf(out, ",%lld,%lld,%s,", (long long)q->input_tokens, (long long)q->output_tokens,
                request_state_names[result->state]);
        csv_cell(end_reason_names[result->reason], out);
        if (completed)
            print_times(q, result, out);
        else
            fputs(",,,,,", out);
        fprintf(out, ",%d,%lld", result->preemptions, (long long)result->cached_tokens);
        print_transfer(result, out);
        fputc('\n', out);
    }
}
