/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices (hw/devices/NAME.json) and clusters of them (hw/clusters/NAME.json): data-sheet numbers,
 * each with its source in the file. What a machine really reaches is the profile's business.
 */
#ifndef HW_DEVICE_H
#define HW_DEVICE_H

#include "hw/model.h"

struct device {
    char name[48];
    double memory_bytes;
    double hbm_gb_per_s;
    double tflops[FMT_COUNT];  /* dense peak by operand format; 0: not supported in hardware */
    double link_gb_per_s;      /* one direction, one device, inside the scale-up domain */
    int sms;                   /* what attention's work is dealt out to; 0: not said */
    double l2_bytes;           /* 0: not said */
    double host_load_gb_per_s; /* weights from host storage, per device: for `restart` */
};

struct cluster {
    char name[48];
    struct device device;
    int ranks;            /* T: ranks of one group */
    double memory_frac;   /* of device memory, for weights, KV and reserve (mem-fraction-static) */
    double reserve_bytes; /* per rank, inside that share, for graphs of every layout and scratch */
    char profile[96];     /* default profile: name or path */
};

/* Load by name or path; a cluster brings its device along, its profile is a name only. */
int device_load(struct device *d, const char *name_or_path, struct err *err);
int cluster_load(struct cluster *c, const char *name_or_path, struct err *err);

/* Peak rate for operands of format f; a format that the hardware lacks runs as the next wider one
 * (FP8 and INT8 on a device without them run as BF16). */
double device_tflops(const struct device *d, enum number_format f);

#endif
