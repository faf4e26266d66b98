/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/profile_about.h"

#include <stdio.h>
#include <string.h>

void profile_about_open(struct profile_about *p, const char *profile)
{
    struct err err = ERR_NONE;
    char name[CATALOG_NAME_SIZE];
    memset(p, 0, sizeof *p);
    if (catalog_open(&p->doc, "profiles", profile, name, &err) < 0) {
        snprintf(p->text, sizeof p->text, "%s", profile);
        return;
    }
    const char *kind = json_string_value(json_object_get(p->doc.json, "kind"));
    bool assumed = kind != NULL && strcmp(kind, "analytic") == 0;
    snprintf(p->text, sizeof p->text, "%s: %s", name,
             assumed        ? "efficiencies assumed, not measured"
             : kind != NULL ? kind
                            : "?");
    p->source = json_object_get(p->doc.json, "source");
}

void profile_about_close(struct profile_about *p)
{
    catalog_close(&p->doc);
}
