/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/policy/external.h"
#include "sim/policy/guard.h"

/* What version 1 had, and every later one will have. */
static bool is_whole(const struct wavetank_policy *p)
{
    return p->size >= offsetof(struct wavetank_policy, fini) + sizeof p->fini && p->init != NULL &&
           p->decide != NULL;
}

const struct wavetank_policy *native_open(const char *path, void **handle, struct err *err)
{
    /* dlopen looks for a name without a slash among the system's libraries. */
    char *file = xasprintf("%s%s", strchr(path, '/') != NULL ? "" : "./", path);
    guard_enter(path, "loading", -1);
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    guard_leave();
    free(file);
    if (object == NULL) {
        err_set(err, "policy %s: cannot be loaded: %s", path, dlerror());
        return NULL;
    }
    void *symbol = dlsym(object, "wavetank_policy");
    const struct wavetank_policy *(*entry)(void), *policy = NULL;
    memcpy(&entry, &symbol, sizeof entry); /* C has no cast from an object to a function */
    guard_enter(path, "wavetank_policy", -1);
    policy = symbol != NULL ? entry() : NULL;
    guard_leave();
    if (policy == NULL)
        err_set(err, "policy %s: no wavetank_policy() in it: see wavetank/policy.h", path);
    else if (policy->abi != WAVETANK_POLICY_ABI)
        err_set(err,
                "policy %s: made for version %u of wavetank/policy.h; this is %d: compile it "
                "again",
                path, (unsigned)policy->abi, WAVETANK_POLICY_ABI);
    else if (!is_whole(policy))
        err_set(err, "policy %s: its struct wavetank_policy lacks size, init or decide", path);
    if (err->set) {
        native_close(object);
        return NULL;
    }
    *handle = object;
    return policy;
}

void native_close(void *handle)
{
    if (handle != NULL)
        dlclose(handle);
}
