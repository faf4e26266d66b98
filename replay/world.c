/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/world.h"

#include "replay/tcp.h"
#include "sim/base/units.h"
#include "sim/layout/layout.h"

#include <stdlib.h>

/* What a launcher calls things. */
struct launcher {
    const char *rank, *ranks, *local_rank;
    const char *only_with; /* or NULL: says nothing unless this is set */
    bool may_be_outer;     /* srun sets it as well, perhaps for another launcher's daemons */
};

/* From the inside out: mpirun and torchrun may be started by srun, once per host. A batch script
 * has the variables of a rank without being one, but no step. */
static const char slurm_step[] = "SLURM_STEP_ID";
static const struct launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", NULL, false},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", NULL, false},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL, true},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", slurm_step, true},
};

/* The variable as a number in [min, max], or `otherwise` when it is not set. */
static int read_number(const char *name, int min, int max, int otherwise, int *out, struct err *err)
{
    int64_t value = otherwise;
    const char *text = getenv(name);
    if (text != NULL && units_parse_i64(text, name, min, max, &value, err) < 0)
        return -1;
    *out = (int)value;
    return 0;
}

static bool has_spoken(const struct launcher *l)
{
    return (l->only_with == NULL || getenv(l->only_with) != NULL) &&
           (getenv(l->rank) != NULL || getenv(l->ranks) != NULL);
}

static int read_launcher(const struct launcher *l, struct world *w, struct err *err)
{
    if (getenv(l->rank) == NULL || getenv(l->ranks) == NULL) {
        bool has_rank = getenv(l->rank) != NULL;
        return err_set(err, "%s is set but %s is not: set both, or neither to fork the ranks",
                       has_rank ? l->rank : l->ranks, has_rank ? l->ranks : l->rank);
    }
    if (read_number(l->ranks, 1, RANKS_MAX, 0, &w->ranks, err) < 0 ||
        read_number(l->rank, 0, w->ranks - 1, 0, &w->rank, err) < 0 ||
        read_number(l->local_rank, 0, w->ranks - 1, -1, &w->local_rank, err) < 0)
        return -1;
    w->launched = true;
    return 0;
}

/* The innermost launcher has the word. Returns it, or NULL when there is none or on an error. */
static const struct launcher *ask_launchers(struct world *w, struct err *err)
{
    const struct launcher *said = NULL;
    bool in_step = getenv(slurm_step) != NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const struct launcher *l = &launchers[i];
        struct world other = *w;
        if (!has_spoken(l) || (said != NULL && l->may_be_outer && in_step))
            continue;
        if (read_launcher(l, &other, err) < 0)
            return NULL;
        if (said != NULL && (other.rank != w->rank || other.ranks != w->ranks)) {
            err_set(err,
                    "%s=%d of %d and %s=%d of %d disagree: unset those that are not of this run",
                    said->rank, w->rank, w->ranks, l->rank, other.rank, other.ranks);
            return NULL;
        }
        if (said == NULL) {
            said = l;
            *w = other;
        }
    }
    return said;
}

static int read_meeting_place(const struct launcher *said, int port, struct world *w,
                              struct err *err)
{
    const char *host = getenv("MASTER_ADDR");
    if (host != NULL) {
        if (tcp_check_host(host, "MASTER_ADDR", err) < 0)
            return -1;
        w->host = host;
    }
    if (port == 0 && read_number("MASTER_PORT", 1, 65535, 0, &w->port, err) < 0)
        return -1;
    if (w->port == 0)
        return err_set(err,
                       "%s is set, so a launcher started this rank: say where the ranks meet, with "
                       "--port N or MASTER_PORT (and MASTER_ADDR, unless all are on this host)",
                       said->rank);
    return 0;
}

int world_read(struct world *w, int ranks, int port, struct err *err)
{
    struct world made = {.ranks = ranks, .local_rank = -1, .host = "127.0.0.1", .port = port};
    const struct launcher *said = ask_launchers(&made, err);
    if (err->set)
        return -1;
    if (said != NULL && made.ranks != ranks)
        return err_set(err, "%s: the plan is for %d ranks, got %d: start as many", said->ranks,
                       ranks, made.ranks);
    if (said != NULL && read_meeting_place(said, port, &made, err) < 0)
        return -1;
    *w = made;
    return 0;
}
