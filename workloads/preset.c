/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/preset.h"

int preset_source(struct jobj *o, struct err *err)
{
    const char *text;
    if (jobj_str(o, "source", true, &text, err) < 0)
        return -1;
    return text[0] != '\0' ? 0
                           : jobj_fail(o, "source", err, "must say where the number comes from");
}

int preset_f64(struct jobj *up, const char *key, double min, double max, double *out,
               struct err *err)
{
    struct jobj o;
    double value;
    if (jobj_open(&o, up, key, true, err) < 0 ||
        jobj_f64(&o, "value", true, min, max, &value, err) < 0 || preset_source(&o, err) < 0 ||
        jobj_done(&o, err) < 0)
        return -1;
    *out = value;
    return 0;
}

int preset_i64(struct jobj *up, const char *key, double min, double max, int64_t *out,
               struct err *err)
{
    struct jobj o;
    int64_t value;
    if (jobj_open(&o, up, key, true, err) < 0 ||
        jobj_i64(&o, "value", true, (int64_t)min, (int64_t)max, &value, err) < 0 ||
        preset_source(&o, err) < 0 || jobj_done(&o, err) < 0)
        return -1;
    *out = value;
    return 0;
}
