/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/device.h"

#include "hw/catalog.h"
#include "sim/base/units.h"

enum { RANKS_MAX = 4096 };

static const int sms_max = 1 << 16;

static const double memory_bytes_max = 1e15, gb_per_s_min = 1e-3, gb_per_s_max = 1e6,
                    tflops_min = 1e-3, tflops_max = 1e6;

/* The hardware must know the two widest formats: the others fall back on them. */
static int read_tflops(struct jobj *root, double tflops[FMT_COUNT], struct err *err)
{
    struct jobj o;
    if (jobj_open(&o, root, "tflops", true, err) < 0)
        return -1;
    for (int f = 0; f < FMT_COUNT; f++) {
        bool required = f == FMT_FP32 || f == FMT_BF16;
        if (jobj_f64(&o, number_format_names[f], required, required ? tflops_min : 0, tflops_max,
                     &tflops[f], err) < 0)
            return -1;
    }
    return jobj_done(&o, err);
}

static int read_device(struct jobj *root, struct device *d, struct err *err)
{
    if (jobj_f64(root, "memory_bytes", true, 1, memory_bytes_max, &d->memory_bytes, err) < 0 ||
        jobj_f64(root, "hbm_gb_per_s", true, gb_per_s_min, gb_per_s_max, &d->hbm_gb_per_s, err) <
            0 ||
        read_tflops(root, d->tflops, err) < 0 ||
        jobj_f64(root, "link_gb_per_s", true, gb_per_s_min, gb_per_s_max, &d->link_gb_per_s, err) <
            0 ||
        jobj_int(root, "sms", false, 0, sms_max, &d->sms, err) < 0 ||
        jobj_f64(root, "l2_bytes", false, 0, memory_bytes_max, &d->l2_bytes, err) < 0 ||
        jobj_f64(root, "host_load_gb_per_s", true, gb_per_s_min, gb_per_s_max,
                 &d->host_load_gb_per_s, err) < 0)
        return -1;
    return jobj_done(root, err);
}

int device_load(struct device *d, const char *name_or_path, struct err *err)
{
    struct catalog_doc doc;
    struct device read = {0};
    if (catalog_open(&doc, "devices", name_or_path, read.name, err) < 0)
        return -1;
    int status = read_device(&doc.root, &read, err);
    catalog_close(&doc);
    if (status == 0)
        *d = read;
    return status;
}

static int read_cluster(struct jobj *root, struct cluster *c, struct err *err)
{
    const char *device;
    double reserve_gib;
    if (jobj_str(root, "device", true, &device, err) < 0 ||
        device_load(&c->device, device, err) < 0 ||
        jobj_int(root, "ranks", true, 1, RANKS_MAX, &c->ranks, err) < 0 ||
        jobj_f64(root, "memory_frac", true, 0.01, 1, &c->memory_frac, err) < 0 ||
        jobj_f64(root, "reserve_gib", true, 0, memory_bytes_max / GIB, &reserve_gib, err) < 0 ||
        catalog_str(root, "profile", c->profile, sizeof c->profile, err) < 0)
        return -1;
    c->reserve_bytes = reserve_gib * GIB;
    if (c->reserve_bytes >= c->memory_frac * c->device.memory_bytes)
        return jobj_fail(root, "reserve_gib", err, "leaves nothing of the %.4g GiB per rank",
                         c->memory_frac * c->device.memory_bytes / GIB);
    return jobj_done(root, err);
}

int cluster_load(struct cluster *c, const char *name_or_path, struct err *err)
{
    struct catalog_doc doc;
    struct cluster read = {0};
    if (catalog_open(&doc, "clusters", name_or_path, read.name, err) < 0)
        return -1;
    int status = read_cluster(&doc.root, &read, err);
    catalog_close(&doc);
    if (status == 0)
        *c = read;
    return status;
}

double device_tflops(const struct device *d, enum number_format f)
{
    static const enum number_format wider[FMT_COUNT] = {
        [FMT_FP32] = FMT_FP32, [FMT_BF16] = FMT_FP32, [FMT_FP8] = FMT_BF16,
        [FMT_INT8] = FMT_BF16, [FMT_FP4] = FMT_FP8,
    };
    while (d->tflops[f] <= 0 && wider[f] != f)
        f = wider[f];
    return d->tflops[f];
}
