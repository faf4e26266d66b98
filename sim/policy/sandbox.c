/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/policy/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <luajit-2.1/lauxlib.h>
#include <luajit-2.1/luajit.h>
#include <luajit-2.1/lualib.h>

/* What a script may reach. xpcall is not safe: LuaJIT runs its handler without hooks. pcall is, but
 * would only hide errors from the report. */
static const char *const kept[] = {
    "assert", "bit",      "error",    "getmetatable", "ipairs", "math",         "next",
    "pairs",  "rawequal", "rawget",   "rawset",       "select", "setmetatable", "string",
    "table",  "tonumber", "tostring", "type",         "unpack",
};

static void *allocate(void *context, void *block, size_t old_bytes, size_t new_bytes)
{
    struct sandbox *b = context;
    size_t old = block != NULL ? old_bytes : 0;
    if (new_bytes == 0) {
        free(block);
        b->used_bytes -= old;
        return NULL;
    }
    if (new_bytes > old && new_bytes - old > SANDBOX_BYTES - b->used_bytes)
        return NULL;
    void *moved = realloc(block, new_bytes);
    if (moved != NULL)
        b->used_bytes = b->used_bytes - old + new_bytes;
    return moved;
}

/* From now on at every instruction, should a script have found a way to go on. */
static void out_of_budget(lua_State *lua, lua_Debug *where)
{
    (void)where;
    lua_sethook(lua, out_of_budget, LUA_MASKCOUNT, 1);
    luaL_error(lua, "more than %d instructions", SANDBOX_INSTRUCTIONS);
}

/* string.rep, bounded: the original is the upvalue. */
static int bounded_rep(lua_State *lua)
{
    size_t len, between;
    luaL_checklstring(lua, 1, &len);
    lua_Number n = luaL_checknumber(lua, 2);
    luaL_optlstring(lua, 3, "", &between);
    if (n > 0 && (lua_Number)(len + between) * n > SANDBOX_REP_BYTES)
        return luaL_error(lua, "string.rep: more than %d bytes", SANDBOX_REP_BYTES);
    lua_settop(lua, 3);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 3, 1);
    return 1;
}

/* string.gsub, bounded: the original and the sandbox are the upvalues. */
static int bounded_gsub(lua_State *lua)
{
    struct sandbox *b = lua_touserdata(lua, lua_upvalueindex(2));
    if (++b->gsub_depth > SANDBOX_GSUB_DEPTH)
        return luaL_error(lua, "string.gsub: nested more than %d deep", SANDBOX_GSUB_DEPTH);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
    b->gsub_depth--;
    return lua_gettop(lua);
}

static void open_library(lua_State *lua, const char *name, lua_CFunction open)
{
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 0);
}

static void tame_strings(struct sandbox *b)
{
    lua_State *lua = b->lua;
    lua_getglobal(lua, "string");
    lua_getfield(lua, -1, "rep");
    lua_pushcclosure(lua, bounded_rep, 1);
    lua_setfield(lua, -2, "rep");
    lua_getfield(lua, -1, "gsub");
    lua_pushlightuserdata(lua, b);
    lua_pushcclosure(lua, bounded_gsub, 2);
    lua_setfield(lua, -2, "gsub");
    lua_pushnil(lua);
    lua_setfield(lua, -2, "dump");
    lua_settop(lua, 0);
    lua_pushliteral(lua, "");
    lua_getmetatable(lua, -1);
    lua_pushboolean(lua, 0);
    lua_setfield(lua, -2, "__metatable");
    lua_settop(lua, 0);
}

static void seed_random(lua_State *lua, uint64_t seed)
{
    lua_getglobal(lua, "math");
    lua_getfield(lua, -1, "randomseed");
    lua_pushnumber(lua, (lua_Number)seed);
    lua_call(lua, 1, 0);
    lua_settop(lua, 0);
}

static void keep_what_is_safe(lua_State *lua)
{
    lua_newtable(lua);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        lua_getglobal(lua, kept[i]);
        lua_setfield(lua, -2, kept[i]);
    }
    lua_pushvalue(lua, -1);
    lua_setfield(lua, -2, "_G");
    lua_replace(lua, LUA_GLOBALSINDEX);
}

int sandbox_open(struct sandbox *b, uint64_t seed)
{
    *b = (struct sandbox){0};
    lua_State *lua = b->lua = lua_newstate(allocate, b);
    if (lua == NULL)
        return -1;
    /* Compiled code does not count instructions. */
    luaJIT_setmode(lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    open_library(lua, "", luaopen_base);
    open_library(lua, LUA_TABLIBNAME, luaopen_table);
    open_library(lua, LUA_STRLIBNAME, luaopen_string);
    open_library(lua, LUA_MATHLIBNAME, luaopen_math);
    open_library(lua, LUA_BITLIBNAME, luaopen_bit);
    tame_strings(b);
    seed_random(lua, seed);
    keep_what_is_safe(lua);
    return 0;
}

void sandbox_close(struct sandbox *b)
{
    if (b->lua != NULL)
        lua_close(b->lua);
    b->lua = NULL;
}

int sandbox_call(struct sandbox *b, int n_args, char *error, size_t error_size)
{
    b->gsub_depth = 0; /* an error leaves it where it was */
    lua_sethook(b->lua, out_of_budget, LUA_MASKCOUNT, SANDBOX_INSTRUCTIONS);
    int status = lua_pcall(b->lua, n_args, 0, 0);
    if (status == 0)
        return 0;
    const char *what =
        lua_type(b->lua, -1) == LUA_TSTRING ? lua_tostring(b->lua, -1) : "an error that is no text";
    if (status == LUA_ERRMEM)
        snprintf(error, error_size, "more than %d MiB of memory", SANDBOX_BYTES >> 20);
    else
        snprintf(error, error_size, "%s", what);
    lua_settop(b->lua, 0);
    return -1;
}

static const char *read_block(lua_State *lua, void *context, size_t *size)
{
    static char block[4096];
    (void)lua;
    *size = fread(block, 1, sizeof block, context);
    return *size > 0 ? block : NULL;
}

void sandbox_load(lua_State *lua, const char *path)
{
    FILE *in = fopen(path, "r");
    if (in == NULL)
        luaL_error(lua, "cannot be read");
    lua_pushfstring(lua, "@%s", path);
    /* Text only: LuaJIT does not check bytecode. */
    int status = lua_loadx(lua, read_block, in, lua_tostring(lua, -1), "t");
    fclose(in);
    if (status != 0)
        lua_error(lua);
    lua_remove(lua, -2);
}
