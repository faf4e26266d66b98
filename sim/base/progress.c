/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/units.h"

enum { BAR_CELLS = 30 };

static const uint64_t REDRAW_NS = 100000000;

uint64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* -1 when nobody asked for lines. */
static int line_fd(void)
{
    const char *text = getenv(PROGRESS_FD_VARIABLE);
    return text != NULL && text[0] >= '0' && text[0] <= '9' ? atoi(text) : -1;
}

/* A reader that is gone raises SIGPIPE, which ends this program too. */
static void write_line(const struct progress *p, int64_t done)
{
    ssize_t written =
        dprintf(p->fd, "%lld %lld %s\n", (long long)done, (long long)p->total, p->label);
    (void)written;
}

void progress_begin(struct progress *p, const char *label, int64_t total)
{
    uint64_t now_ns = wall_ns();
    int fd = line_fd();
    *p = (struct progress){.on = (fd >= 0 || isatty(STDERR_FILENO)) && total > 0,
                           .fd = fd,
                           .label = label,
                           .total = total,
                           .start_ns = now_ns,
                           .drawn_ns = now_ns};
    if (p->on && fd >= 0)
        write_line(p, 0);
}

/* Blank until a hundredth is done: before that the estimate jumps about. */
static void print_left(const struct progress *p, int64_t done)
{
    double frac = (double)done / (double)p->total;
    if (frac < 0.01)
        return;
    double left_s = (double)(p->drawn_ns - p->start_ns) / 1e9 * (1 - frac) / frac;
    long s = (long)(left_s + 0.5);
    fprintf(stderr, "  %ld:%02ld left", s / 60, s % 60);
}

static void draw(const struct progress *p, int64_t done)
{
    double frac = (double)done / (double)p->total;
    int full = (int)(frac * BAR_CELLS);
    char at[32], of[32];
    fprintf(stderr, "\r%s [", p->label);
    for (int i = 0; i < BAR_CELLS; i++)
        fputc(i < full ? '#' : '.', stderr);
    fprintf(stderr, "] %3d%%  %s of %s", (int)(frac * 100), units_count(done, at, sizeof at),
            units_count(p->total, of, sizeof of));
    print_left(p, done);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_update(struct progress *p, int64_t done)
{
    if (!p->on)
        return;
    uint64_t now_ns = wall_ns();
    if (now_ns - p->drawn_ns < REDRAW_NS)
        return;
    p->drawn_ns = now_ns;
    done = done < 0 ? 0 : done > p->total ? p->total : done;
    if (p->fd >= 0)
        write_line(p, done);
    else
        draw(p, done);
}

void progress_step(struct progress *p)
{
    progress_update(p, ++p->done);
}

void progress_end(struct progress *p)
{
    if (p->on && p->drawn_ns != p->start_ns)
        fputs("\r\033[K", stderr);
    p->on = false;
}
