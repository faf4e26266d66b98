/* SPDX-License-Identifier: Apache-2.0
 *
 * A Lua state for scripts that are not trusted: no io, os, ffi, debug, coroutines, pcall or loading
 * of code, a bound on memory, and a budget of instructions for every call. The bounds are the same
 * on every machine; what slips through both in time (one C function that takes long) is guard.h's.
 */
#ifndef SIM_POLICY_SANDBOX_H
#define SIM_POLICY_SANDBOX_H

#include <stddef.h>
#include <stdint.h>

#include <luajit-2.1/lua.h>

enum {
    SANDBOX_BYTES = 64 << 20,
    SANDBOX_INSTRUCTIONS = 1000000, /* of one call */
    SANDBOX_REP_BYTES = 1 << 20,    /* of one string.rep */
    SANDBOX_GSUB_DEPTH = 32,        /* string.gsub within what it calls: each takes C stack */
};

struct sandbox {
    lua_State *lua;
    size_t used_bytes;
    int gsub_depth;
};

/* Must not be moved afterwards. math.random draws from the seed. -1 when there is no state. */
int sandbox_open(struct sandbox *b, uint64_t seed);
void sandbox_close(struct sandbox *b);

/* Call the function below n_args arguments on the stack with the whole budget. Nothing is left on
 * the stack. Returns 0, or -1 with a message in `error`. */
int sandbox_call(struct sandbox *b, int n_args, char *error, size_t error_size);

/* Push the chunk of a file of text. Inside a call only: raises what is wrong. */
void sandbox_load(lua_State *lua, const char *path);

#endif
