/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/policy/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/policy/external.h"

const struct policy_kind *const policy_kinds[] = {
    &policy_fixed, &policy_greedy, &policy_splash,        &policy_oracle,   &policy_flying,
    &policy_shift, &policy_loong,  &policy_drain_restart, &policy_external, NULL};

const struct opt policy_common_opts[] = {
    {"mechanism", 0, OPT_ENUM, offsetof(struct policy_common, mechanism), "NAME", "overlapped", 0,
     0, "overlapped|blocking|drain|restart|free",
     "how a switch is carried out, unless the policy has a way of its own"},
    {"on-full", 0, OPT_ENUM, offsetof(struct policy_common, on_full), "RULE", "defer", 0, 0,
     "defer|hold", "a switch that memory forbids waits, or admission is held until it fits"},
    {0},
};

static const struct policy_kind *find_kind(const char *name, size_t len)
{
    for (int i = 0; policy_kinds[i] != NULL; i++)
        if (strlen(policy_kinds[i]->name) == len && memcmp(policy_kinds[i]->name, name, len) == 0)
            return policy_kinds[i];
    return NULL;
}

static bool is_common(const char *key)
{
    return strcmp(key, "mechanism") == 0 || strcmp(key, "on_full") == 0 ||
           strcmp(key, "on-full") == 0;
}

static int set_option(struct policy *p, char *item, const struct layout *layouts, int n,
                      struct err *err)
{
    char *value = strchr(item, '=');
    char *what = xasprintf("policy %s", p->kind->name);
    int rc = 0;
    if (value != NULL && p->kind->extra != NULL) {
        *value = '\0';
        rc = p->kind->extra(p->state, item, value + 1, layouts, n, err);
        *value = '=';
    }
    if (rc == 0) {
        size_t key_len = value ? (size_t)(value - item) : strlen(item);
        char key[32] = {0};
        memcpy(key, item, key_len < sizeof key ? key_len : sizeof key - 1);
        bool own = p->kind->opts != NULL && !is_common(key);
        rc = own ? opt_parse_list(p->kind->opts, p->state, what, item, err)
                 : opt_parse_list(policy_common_opts, &p->common, what, item, err);
    }
    free(what);
    return rc < 0 ? -1 : 0;
}

static int set_options(struct policy *p, const char *text, const struct layout *layouts, int n,
                       struct err *err)
{
    char *copy = xstrdup(text), *rest = copy, *item;
    int rc = 0;
    while (rc == 0 && (item = strtok_r(rest, ",", &rest)) != NULL)
        rc = set_option(p, item, layouts, n, err);
    free(copy);
    return rc;
}

static int unknown_policy(const char *text, struct err *err)
{
    const char *names[16];
    int n = 0;
    for (; policy_kinds[n] != NULL; n++)
        names[n] = policy_kinds[n]->name;
    names[n++] = "best-fixed";
    const char *near = err_nearest(text, names, n);
    return err_set(
        err,
        "--policy: unknown policy \"%s\"%s%s%s; policies: fixed:<layout>, best-fixed, a "
        "layout of --layouts, a FILE.so or FILE.lua, or one of \"wavetank list policies\"",
        text, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static bool is_layout(const char *text, const struct layout *layouts, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(layouts[i].name, text) == 0)
            return true;
    return false;
}

int policy_new(struct policy *p, const char *text, const struct layout *layouts, int n,
               struct err *err)
{
    size_t file = external_path_len(text), len = file > 0 ? file : strcspn(text, ":");
    const char *arg = text[len] ? text + len + 1 : NULL;
    const struct policy_kind *kind = file > 0 ? &policy_external : find_kind(text, len);
    if (kind == NULL && is_layout(text, layouts, n)) {
        kind = &policy_fixed;
        arg = text;
    }
    if (kind == NULL)
        return unknown_policy(text, err);

    struct policy made = {.kind = kind, .may_switch = kind->may_switch};
    made.state = xcalloc(1, kind->state_size);
    opt_defaults(policy_common_opts, &made.common);
    made.common.mechanism = kind->mechanism;
    if (kind->opts != NULL)
        opt_defaults(kind->opts, made.state);
    snprintf(made.name, sizeof made.name, "%s%s", arg == text ? "fixed:" : "", text);
    if (file > 0)
        external_name(made.state, text, file);
    if ((arg != NULL && kind->may_switch && set_options(&made, arg, layouts, n, err) < 0) ||
        kind->init(made.state, arg, layouts, n, err) < 0) {
        policy_release(&made);
        return -1;
    }
    made.start = kind->start != NULL ? kind->start(made.state) : 0;
    *p = made;
    return 0;
}

void policy_release(struct policy *p)
{
    if (p->state != NULL && p->kind->release != NULL)
        p->kind->release(p->state);
    free(p->state);
    p->state = NULL;
}

void policy_copy(struct policy *to, const struct policy *from)
{
    assert(!from->kind->is_external);
    *to = *from;
    to->state = xmemdup(from->state, 1, from->kind->state_size);
}
