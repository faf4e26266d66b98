/* SPDX-License-Identifier: Apache-2.0
 *
 * Lua scripts as policies: a client of sim/include/wavetank/policy.h like any other, whose code is
 * a script. Layouts count from 1 there and may be given by name.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <luajit-2.1/lauxlib.h>

#include "sim/base/mem.h"
#include "sim/policy/external.h"
#include "sim/policy/sandbox.h"

/* Whatever a script may call, by reference. */
enum callback { DECIDE, SWITCHED, STEP_DONE, START, CALLBACK_COUNT };

struct script {
    struct sandbox box;
    const struct wavetank_setup *setup;
    int callback[CALLBACK_COUNT];     /* references; LUA_NOREF when the script has none */
    int ask, tell;                    /* of decide_inside() and tell_inside() */
    int view, layout[LAYOUT_MAX];     /* of the table that decide gets, and of those in it */
    const struct wavetank_view *seen; /* while decide runs, else NULL */
    struct wavetank_decision *answer;
    enum callback told; /* for tell_inside(), with its arguments */
    int64_t arg[4];
    int n_args;
    int32_t launch;
    char error[400]; /* the first; the next decision reports it */
};

static struct script *script_of(lua_State *lua)
{
    return lua_touserdata(lua, lua_upvalueindex(1));
}

static void set_number(lua_State *lua, const char *key, int64_t value)
{
    lua_pushstring(lua, key);
    lua_pushnumber(lua, (lua_Number)value);
    lua_rawset(lua, -3);
}

static void set_bool(lua_State *lua, const char *key, bool value)
{
    lua_pushstring(lua, key);
    lua_pushboolean(lua, value);
    lua_rawset(lua, -3);
}

/* Above 2^53 every double is whole, and no such count means anything but "for ever". */
static int64_t to_i64(lua_Number x)
{
    if (!(fabs(x) < 9007199254740992.0))
        return x > 0 ? WAVETANK_FOREVER : -1;
    return (int64_t)x;
}

/* A layout at a stack index, from 0: given as its number from 1 or as its name. */
static int32_t layout_at(lua_State *lua, const struct script *s, int index)
{
    if (lua_type(lua, index) == LUA_TSTRING) {
        const char *name = lua_tostring(lua, index);
        for (int32_t l = 0; l < s->setup->n_layouts; l++)
            if (strcmp(s->setup->layout[l], name) == 0)
                return l;
        luaL_error(lua, "\"%s\" is not in --layouts", name);
    }
    if (lua_type(lua, index) != LUA_TNUMBER)
        luaL_error(lua, "a layout is a number or a name, not %s", luaL_typename(lua, index));
    lua_Number n = lua_tonumber(lua, index);
    if (!(n >= 1 && n <= s->setup->n_layouts) || n != floor(n))
        luaL_error(lua, "layout %f: they count from 1 to %d", n, (int)s->setup->n_layouts);
    return (int32_t)n - 1;
}

static const struct wavetank_view *seen_by(lua_State *lua)
{
    const struct wavetank_view *view = script_of(lua)->seen;
    if (view == NULL)
        luaL_error(lua, "the view is there while decide runs");
    return view;
}

/* view:leads(from, to, margin_ppm) -> bool, hold */
static int view_leads(lua_State *lua)
{
    const struct wavetank_view *view = seen_by(lua);
    int32_t from = layout_at(lua, script_of(lua), 2), to = layout_at(lua, script_of(lua), 3);
    int64_t hold;
    lua_pushboolean(lua, view->leads(view, from, to, to_i64(luaL_optnumber(lua, 4, 0)), &hold));
    lua_pushnumber(lua, (lua_Number)hold);
    return 2;
}

/* view:switch_cost_ps(to) -> ps */
static int view_switch_cost(lua_State *lua)
{
    const struct wavetank_view *view = seen_by(lua);
    int32_t to = layout_at(lua, script_of(lua), 2);
    lua_pushnumber(lua, (lua_Number)view->switch_cost_ps(view, to));
    return 1;
}

/* view:stages(layout) -> proj, attn, exchange, ffn: ps of the coming step */
static int view_stages(lua_State *lua)
{
    const struct wavetank_view *view = seen_by(lua);
    const struct wavetank_candidate *c = &view->candidate[layout_at(lua, script_of(lua), 2)];
    const struct wavetank_seg stage[] = {c->proj, c->attn, c->exchange, c->ffn};
    for (size_t i = 0; i < sizeof stage / sizeof *stage; i++)
        lua_pushnumber(lua, (lua_Number)stage[i].a_ps);
    return 4;
}

/* view:request(i) -> ctx_tokens, prompt_tokens, output_tokens, owner; nothing when there is none */
static int view_request(lua_State *lua)
{
    const struct wavetank_view *view = seen_by(lua);
    int64_t i = to_i64(luaL_checknumber(lua, 2)) - 1;
    if (i < 0 || i >= view->n_decoding + view->n_prefilling)
        return 0;
    struct wavetank_request r = view->request(view, i);
    lua_pushnumber(lua, (lua_Number)r.ctx_tokens);
    lua_pushnumber(lua, (lua_Number)r.prompt_tokens);
    lua_pushnumber(lua, (lua_Number)r.output_tokens);
    lua_pushnumber(lua, (lua_Number)r.owner + 1);
    return 4;
}

static void show_candidate(lua_State *lua, const struct wavetank_candidate *c)
{
    set_bool(lua, "fits", c->verdict == WAVETANK_FITS);
    set_bool(lua, "never", c->verdict == WAVETANK_FITS_NEVER);
    set_number(lua, "a_ps", c->score.a_ps);
    set_number(lua, "b_ps", c->score.b_ps);
    set_number(lua, "n", c->score.n);
    set_number(lua, "rows", c->rows);
    set_number(lua, "step_ps", c->step.a_ps);
}

static void show(lua_State *lua, const struct script *s)
{
    const struct wavetank_view *v = s->seen;
    for (int l = 0; l < v->n_layouts; l++) {
        lua_rawgeti(lua, LUA_REGISTRYINDEX, s->layout[l]);
        show_candidate(lua, &v->candidate[l]);
        lua_pop(lua, 1);
    }
    lua_rawgeti(lua, LUA_REGISTRYINDEX, s->view);
    set_number(lua, "step", v->step);
    set_number(lua, "now_ps", v->now_ps);
    set_number(lua, "since_switch_ps", v->since_switch_ps);
    set_number(lua, "current", v->current + 1);
    set_number(lua, "n_decoding", v->n_decoding);
    set_number(lua, "n_prefilling", v->n_prefilling);
    set_number(lua, "n_waiting", v->n_waiting);
    set_number(lua, "waiting_tokens", v->waiting_tokens);
    set_number(lua, "steps_left", v->steps_left);
}

/* decide(view) -> layout, hold, wanted, admit_most; nil: as it comes. */
static int decide_inside(lua_State *lua)
{
    struct script *s = script_of(lua);
    struct wavetank_decision *answer = s->answer;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, s->callback[DECIDE]);
    show(lua, s);
    lua_call(lua, 1, 4);
    if (!lua_isnil(lua, -4))
        answer->layout = layout_at(lua, s, -4);
    if (!lua_isnil(lua, -3))
        answer->hold = to_i64(luaL_checknumber(lua, -3));
    if (!lua_isnil(lua, -2))
        answer->wanted = layout_at(lua, s, -2);
    if (!lua_isnil(lua, -1))
        answer->admit_most = to_i64(luaL_checknumber(lua, -1));
    return 0;
}

static int tell_inside(lua_State *lua)
{
    const struct script *s = script_of(lua);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, s->callback[s->told]);
    for (int i = 0; i < s->n_args; i++)
        lua_pushnumber(lua, (lua_Number)s->arg[i]);
    lua_call(lua, s->n_args, 0);
    return 0;
}

static int reference_to(lua_State *lua, struct script *s, lua_CFunction f)
{
    lua_pushlightuserdata(lua, s);
    lua_pushcclosure(lua, f, 1);
    return luaL_ref(lua, LUA_REGISTRYINDEX);
}

static void make_view(lua_State *lua, struct script *s)
{
    static const struct {
        const char *name;
        lua_CFunction f;
    } method[] = {{"leads", view_leads},
                  {"switch_cost_ps", view_switch_cost},
                  {"stages", view_stages},
                  {"request", view_request}};
    lua_newtable(lua);
    for (size_t i = 0; i < sizeof method / sizeof *method; i++) {
        lua_pushlightuserdata(lua, s);
        lua_pushcclosure(lua, method[i].f, 1);
        lua_setfield(lua, -2, method[i].name);
    }
    lua_newtable(lua);
    for (int l = 0; l < s->setup->n_layouts; l++) {
        lua_newtable(lua);
        lua_pushstring(lua, s->setup->layout[l]);
        lua_setfield(lua, -2, "name");
        lua_pushvalue(lua, -1);
        s->layout[l] = luaL_ref(lua, LUA_REGISTRYINDEX);
        lua_rawseti(lua, -2, l + 1);
    }
    lua_setfield(lua, -2, "layouts");
    s->view = luaL_ref(lua, LUA_REGISTRYINDEX);
}

/* What init gets: { layouts = {"tp", ...}, options = {key = "value", ...} }. */
static void push_setup(lua_State *lua, const struct wavetank_setup *setup)
{
    lua_newtable(lua);
    lua_newtable(lua);
    for (int l = 0; l < setup->n_layouts; l++) {
        lua_pushstring(lua, setup->layout[l]);
        lua_rawseti(lua, -2, l + 1);
    }
    lua_setfield(lua, -2, "layouts");
    lua_newtable(lua);
    for (int i = 0; i < setup->n_options; i++) {
        lua_pushstring(lua, setup->value[i]);
        lua_setfield(lua, -2, setup->key[i]);
    }
    lua_setfield(lua, -2, "options");
}

/* The script returns its callbacks in a table; init(setup) may return the layout to launch in. */
static int init_inside(lua_State *lua)
{
    static const char *const name[CALLBACK_COUNT] = {
        [DECIDE] = "decide", [SWITCHED] = "switched", [STEP_DONE] = "step_done", [START] = "init"};
    struct script *s = script_of(lua);
    make_view(lua, s);
    s->ask = reference_to(lua, s, decide_inside);
    s->tell = reference_to(lua, s, tell_inside);
    sandbox_load(lua, s->setup->path);
    lua_call(lua, 0, 1);
    if (!lua_istable(lua, -1))
        luaL_error(lua, "the script returns no table: end it with return {decide = decide}");
    for (int i = 0; i < CALLBACK_COUNT; i++) {
        lua_pushstring(lua, name[i]);
        lua_rawget(lua, -2);
        bool has = lua_isfunction(lua, -1);
        if (!has && !lua_isnil(lua, -1))
            luaL_error(lua, "%s is no function", name[i]);
        s->callback[i] = has ? luaL_ref(lua, LUA_REGISTRYINDEX) : LUA_NOREF;
        lua_settop(lua, 1);
    }
    if (s->callback[DECIDE] == LUA_NOREF)
        luaL_error(lua, "no function decide in what the script returns");
    if (s->callback[START] == LUA_NOREF)
        return 0;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, s->callback[START]);
    push_setup(lua, s->setup);
    lua_call(lua, 1, 1);
    if (!lua_isnil(lua, -1))
        s->launch = layout_at(lua, s, -1);
    return 0;
}

static void fini(void *state)
{
    struct script *s = state;
    sandbox_close(&s->box);
    free(s);
}

static void *init(const struct wavetank_setup *setup, char *error, size_t error_size)
{
    struct script *s = xcalloc(1, sizeof *s);
    s->setup = setup;
    if (sandbox_open(&s->box, setup->seed) < 0) {
        snprintf(error, error_size, "this LuaJIT cannot be given a bound on its memory");
        fini(s);
        return NULL;
    }
    lua_pushlightuserdata(s->box.lua, s);
    lua_pushcclosure(s->box.lua, init_inside, 1);
    if (sandbox_call(&s->box, 0, error, error_size) < 0) {
        fini(s);
        return NULL;
    }
    return s;
}

static int32_t start(void *state)
{
    return ((const struct script *)state)->launch;
}

static void decide(void *state, const struct wavetank_view *view, struct wavetank_decision *out)
{
    struct script *s = state;
    s->seen = view;
    s->answer = out;
    if (s->error[0] == '\0') {
        lua_rawgeti(s->box.lua, LUA_REGISTRYINDEX, s->ask);
        sandbox_call(&s->box, 0, s->error, sizeof s->error);
    }
    s->seen = NULL;
    if (s->error[0] != '\0')
        out->error = s->error;
}

static void tell(struct script *s, enum callback told)
{
    if (s->callback[told] == LUA_NOREF || s->error[0] != '\0')
        return;
    s->told = told;
    lua_rawgeti(s->box.lua, LUA_REGISTRYINDEX, s->tell);
    sandbox_call(&s->box, 0, s->error, sizeof s->error);
}

static void switched(void *state, int32_t from, int32_t to, int64_t now_ps)
{
    struct script *s = state;
    s->n_args = 3;
    s->arg[0] = from + 1;
    s->arg[1] = to + 1;
    s->arg[2] = now_ps;
    tell(s, SWITCHED);
}

static void step_done(void *state, const struct wavetank_step *step)
{
    struct script *s = state;
    s->n_args = 4;
    s->arg[0] = step->layout + 1;
    s->arg[1] = step->n;
    s->arg[2] = step->elapsed_ps;
    s->arg[3] = step->now_ps;
    tell(s, STEP_DONE);
}

const struct wavetank_policy lua_policy = {
    .abi = WAVETANK_POLICY_ABI,
    .size = sizeof lua_policy,
    .init = init,
    .start = start,
    .decide = decide,
    .switched = switched,
    .step_done = step_done,
    .fini = fini,
};
