/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/policy/external.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/policy/guard.h"
#include "sim/policy/lead.h"

enum { OPTIONS_MAX = 32 };

struct external {
    char *path, *name[LAYOUT_MAX], *key[OPTIONS_MAX], *value[OPTIONS_MAX];
    struct wavetank_setup setup;
    void *handle; /* of a shared object */
    const struct wavetank_policy *code;
    void *own; /* its state */
    int64_t step, last_switch_ps;
    bool has_switched;
    char fault[512];
    struct wavetank_candidate candidate[LAYOUT_MAX];
};

size_t external_path_len(const char *text)
{
    static const char *const ending[] = {".so", ".lua"};
    for (const char *at = text; (at = strchr(at, '.')) != NULL; at++)
        for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
            size_t len = strlen(ending[i]);
            if (strncmp(at, ending[i], len) == 0 && (at[len] == ':' || at[len] == '\0'))
                return (size_t)(at - text) + len;
        }
    return 0;
}

void external_name(void *state, const char *text, size_t len)
{
    struct external *x = state;
    x->path = xcalloc(len + 1, 1);
    memcpy(x->path, text, len);
}

static bool is_script(const char *path)
{
    size_t len = strlen(path);
    return len > 4 && strcmp(path + len - 4, ".lua") == 0;
}

static int extra(void *state, const char *key, const char *value, const struct layout *layouts,
                 int n, struct err *err)
{
    struct external *x = state;
    int at = x->setup.n_options;
    (void)layouts, (void)n;
    if (strcmp(key, "mechanism") == 0 || strcmp(key, "on_full") == 0 || strcmp(key, "on-full") == 0)
        return 0;
    if (at == OPTIONS_MAX)
        return err_set(err, "policy %s: more than %d options", x->path, OPTIONS_MAX);
    int64_t seed;
    if (strcmp(key, "seed") == 0) {
        if (units_parse_i64(value, "seed", 0, INT64_MAX, &seed, err) < 0)
            return -1;
        x->setup.seed = (uint64_t)seed;
    }
    x->key[at] = xstrdup(key);
    x->value[at] = xstrdup(value);
    x->setup.n_options++;
    return 1;
}

static int init(void *state, const char *arg, const struct layout *layouts, int n, struct err *err)
{
    struct external *x = state;
    char message[400] = "";
    (void)arg;
    x->step = -1;
    if (x->path == NULL)
        return err_set(err, "--policy: write the path of a .so or .lua file");
    for (int i = 0; i < n; i++)
        x->name[i] = xstrdup(layouts[i].name);
    x->setup.size = sizeof x->setup;
    x->setup.path = x->path;
    x->setup.n_layouts = n;
    x->setup.layout = (const char *const *)x->name;
    x->setup.key = (const char *const *)x->key;
    x->setup.value = (const char *const *)x->value;
    x->code = is_script(x->path) ? &lua_policy : native_open(x->path, &x->handle, err);
    if (x->code == NULL)
        return -1;
    guard_enter(x->path, "init", -1);
    x->own = x->code->init(&x->setup, message, sizeof message);
    guard_leave();
    message[sizeof message - 1] = '\0';
    if (x->own == NULL)
        return err_set(err, "policy %s: %s", x->path, message[0] ? message : "init failed");
    return 0;
}

static int start(const void *state)
{
    const struct external *x = state;
    if (x->code->start == NULL)
        return 0;
    guard_enter(x->path, "start", -1);
    int layout = x->code->start(x->own);
    guard_leave();
    return layout >= 0 && layout < x->setup.n_layouts ? layout : 0;
}

static struct wavetank_seg seg_out(struct seg s)
{
    return (struct wavetank_seg){s.a_ps, s.b_ps, s.n};
}

static struct wavetank_candidate candidate_out(const struct candidate *c)
{
    return (struct wavetank_candidate){
        .verdict = (int32_t)c->verdict,
        .rows = c->cost.rows,
        .score = seg_out(c->score),
        .step = seg_out(c->cost.step),
        .proj = seg_out(c->cost.proj),
        .attn = seg_out(c->cost.attn),
        .exchange = seg_out(c->cost.exchange),
        .ffn = seg_out(c->cost.ffn),
    };
}

static struct wavetank_request request_out(const struct wavetank_view *v, int64_t i)
{
    const struct policy_view *view = v->context;
    if (i < 0 || i >= v->n_decoding + v->n_prefilling)
        return (struct wavetank_request){.owner = -1};
    struct policy_request r = view->request(view, i);
    return (struct wavetank_request){r.ctx_tokens, r.prompt_tokens, r.output_tokens, r.owner};
}

static int64_t switch_cost_out(const struct wavetank_view *v, int32_t to)
{
    const struct policy_view *view = v->context;
    bool is_switch = to >= 0 && to < v->n_layouts && to != v->current;
    return is_switch ? view->switch_cost_ps(view, to) : 0;
}

static bool leads_out(const struct wavetank_view *v, int32_t from, int32_t to, int64_t margin_ppm,
                      int64_t *hold)
{
    const struct policy_view *view = v->context;
    int64_t left_ppm = PPM - max_i64(0, min_i64(margin_ppm, PPM));
    *hold = WAVETANK_FOREVER;
    if (from < 0 || from >= v->n_layouts || to < 0 || to >= v->n_layouts)
        return false;
    struct seg x = view->candidate[from].score, y = view->candidate[to].score;
    *hold = seg_same_order(x, left_ppm, y, PPM);
    return (__int128)left_ppm * x.a_ps > (__int128)PPM * y.a_ps;
}

static struct decision fault(struct external *x, const char *fmt, long long value)
{
    if (x->fault[0] == '\0')
        snprintf(x->fault, sizeof x->fault, fmt, value);
    return (struct decision){.fault = x->fault};
}

static struct decision checked(struct external *x, const struct wavetank_decision *d)
{
    int n = x->setup.n_layouts;
    if (d->error != NULL)
        snprintf(x->fault, sizeof x->fault, "%s", d->error);
    if (x->fault[0] != '\0')
        return fault(x, "", 0);
    if (d->layout < 0 || d->layout >= n)
        return fault(x, "decide chose layout %lld, which there is not", d->layout);
    if (d->wanted < -1 || d->wanted >= n)
        return fault(x, "decide wanted layout %lld, which there is not", d->wanted);
    if (d->hold < 1)
        return fault(x, "decide answered with a hold of %lld steps: 1 is the least", d->hold);
    if (d->admit_most < 0)
        return fault(x, "decide admits %lld requests: 1 is the least, 0 no limit", d->admit_most);
    if (x->candidate[d->layout].verdict != WAVETANK_FITS)
        return fault(x, "decide chose layout %lld, which does not fit", d->layout);
    return (struct decision){
        .layout = d->layout,
        .wanted = d->wanted < 0 ? d->layout : d->wanted,
        .hold = d->hold,
        .admit_most = d->admit_most,
    };
}

static struct decision decide(void *state, const struct policy_view *view)
{
    struct external *x = state;
    for (int i = 0; i < view->n; i++)
        x->candidate[i] = candidate_out(&view->candidate[i]);
    struct wavetank_view v = {
        .size = sizeof v,
        .step = view->step,
        .now_ps = view->now_ps,
        .since_switch_ps = x->has_switched ? view->now_ps - x->last_switch_ps : -1,
        .current = view->current,
        .n_layouts = view->n,
        .candidate = x->candidate,
        .n_decoding = view->load.decoding,
        .n_prefilling = view->load.prefilling,
        .n_waiting = view->load.waiting,
        .waiting_tokens = view->load.waiting_tokens,
        .steps_left = view->steps_left,
        .request = request_out,
        .switch_cost_ps = switch_cost_out,
        .leads = leads_out,
        .context = view,
    };
    struct wavetank_decision d = {
        .size = sizeof d, .layout = view->current, .wanted = -1, .hold = 1};
    x->step = view->step;
    guard_enter(x->path, "decide", x->step);
    x->code->decide(x->own, &v, &d);
    guard_leave();
    return checked(x, &d);
}

static void switched(void *state, int from, int to, int64_t now_ps)
{
    struct external *x = state;
    x->has_switched = true;
    x->last_switch_ps = now_ps;
    if (x->code->switched == NULL)
        return;
    guard_enter(x->path, "switched", x->step);
    x->code->switched(x->own, from, to, now_ps);
    guard_leave();
}

static void step_done(void *state, int layout, int64_t n, int64_t elapsed_ps, int64_t now_ps)
{
    struct external *x = state;
    struct wavetank_step step = {sizeof step, now_ps, n, elapsed_ps, layout};
    if (x->code->step_done == NULL)
        return;
    guard_enter(x->path, "step_done", x->step);
    x->code->step_done(x->own, &step);
    guard_leave();
}

static void release(void *state)
{
    struct external *x = state;
    if (x->own != NULL && x->code->fini != NULL) {
        guard_enter(x->path, "fini", x->step);
        x->code->fini(x->own);
        guard_leave();
    }
    native_close(x->handle);
    for (int i = 0; i < x->setup.n_layouts; i++)
        free(x->name[i]);
    for (int i = 0; i < x->setup.n_options; i++) {
        free(x->key[i]);
        free(x->value[i]);
    }
    free(x->path);
}

const struct policy_kind policy_external = {
    .name = "FILE.so, FILE.lua",
    .what = "your own, in C or Lua: ./mine.lua:key=value (docs/policies.md)",
    .may_switch = true,
    .is_external = true,
    .state_size = sizeof(struct external),
    .init = init,
    .start = start,
    .extra = extra,
    .decide = decide,
    .switched = switched,
    .step_done = step_done,
    .release = release,
};
