/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies from outside: a shared object or a Lua script behind sim/include/wavetank/policy.h, as
 * one kind of policy. It translates, checks every answer, and guards every call (guard.h).
 */
#ifndef SIM_POLICY_EXTERNAL_H
#define SIM_POLICY_EXTERNAL_H

#include "sim/include/wavetank/policy.h"
#include "sim/policy/policy.h"

/* Length of the path that the text of a policy begins with, "./mine.so" of "./mine.so:key=value";
 * 0 when it names no file. */
size_t external_path_len(const char *text);
/* Before the options and policy_external.init: the file, the first len bytes of text. */
void external_name(void *state, const char *text, size_t len);

/* native.c: load a shared object. *handle is to be given to native_close. NULL with err when there
 * is none, it lacks wavetank_policy() or is of another version. */
const struct wavetank_policy *native_open(const char *path, void **handle, struct err *err);
void native_close(void *handle);

/* lua.c: the policy that runs setup->path as a script, in a sandbox (sandbox.h). */
extern const struct wavetank_policy lua_policy;

#endif
