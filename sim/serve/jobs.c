/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

#include "sim/base/mem.h"

const char *const job_state_names[JOB_STATE_COUNT] = {
    [JOB_OPEN] = "open",
    [JOB_QUEUED] = "queued",
    [JOB_RUNNING] = "running",
    [JOB_DONE] = "done",
    [JOB_FAILED] = "failed",
    [JOB_CANCELLED] = "cancelled",
    [JOB_INTERRUPTED] = "interrupted",
};

enum query { Q_ADD, Q_GET, Q_NEXT, Q_LIST, Q_MOVE, Q_REMOVE, Q_COUNT, Q_KINDS };

#define COLUMNS "id, kind, state, name, ask, message, created_s, started_s, ended_s"

/* The numbers of states are the file's format: enum job_state only grows at its end. */
static const char *const queries[Q_KINDS] = {
    [Q_ADD] = "INSERT INTO job(" COLUMNS ") VALUES(?1,?2,?3,?4,?5,NULL,?6,0,0)",
    [Q_GET] = "SELECT " COLUMNS " FROM job WHERE kind = ?1 AND id = ?2",
    [Q_NEXT] = "SELECT " COLUMNS " FROM job WHERE state = 1 ORDER BY number LIMIT 1",
    [Q_LIST] = "SELECT " COLUMNS " FROM job WHERE kind = ?1 AND "
               "(?3 IS NULL OR number < (SELECT number FROM job WHERE id = ?3)) "
               "ORDER BY number DESC LIMIT ?2",
    [Q_MOVE] = "UPDATE job SET state = ?2, message = ?3, "
               "started_s = CASE WHEN ?2 = 2 THEN ?4 ELSE started_s END, "
               "ended_s = CASE WHEN ?2 > 2 THEN ?4 ELSE 0 END WHERE id = ?1",
    [Q_REMOVE] = "DELETE FROM job WHERE id = ?1",
    [Q_COUNT] = "SELECT count(*) FROM job WHERE kind = ?1 AND state = ?2",
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS job("
    " number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL,"
    " state INTEGER NOT NULL, name TEXT NOT NULL, ask TEXT NOT NULL, message TEXT,"
    " created_s INTEGER NOT NULL, started_s INTEGER NOT NULL, ended_s INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS job_state ON job(state, kind);"
    "UPDATE job SET state = 6, message = 'the server ended while it ran' WHERE state = 2;";

struct jobs {
    sqlite3 *db;
    sqlite3_stmt *query[Q_KINDS];
};

int id_make(char id[ID_SIZE], struct err *err)
{
    unsigned char raw[(ID_SIZE - 1) / 2];
    FILE *f = fopen("/dev/urandom", "rb");
    size_t got = f != NULL ? fread(raw, 1, sizeof raw, f) : 0;
    if (f != NULL)
        fclose(f);
    if (got != sizeof raw)
        return err_run(err, "/dev/urandom: cannot read: %s", strerror(errno));
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(id + 2 * i, 3, "%02x", raw[i]);
    return 0;
}

bool id_is(const char *text)
{
    return strlen(text) == ID_SIZE - 1 && strspn(text, "0123456789abcdef") == ID_SIZE - 1;
}

bool job_has_ended(enum job_state state)
{
    return state >= JOB_DONE;
}

void job_release(struct job *j)
{
    free(j->name);
    free(j->order);
    free(j->message);
    *j = (struct job){0};
}

static int fail(struct jobs *s, struct err *err)
{
    return err_run(err, "the jobs' file: %s", sqlite3_errmsg(s->db));
}

static int prepare(struct jobs *s, const char *path, struct err *err)
{
    /* Exclusive: two servers would start each other's jobs. */
    static const char settings[] = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                                   "PRAGMA synchronous = NORMAL;";
    if (sqlite3_exec(s->db, settings, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite3_errcode(s->db) == SQLITE_BUSY
                   ? err_set(err, "%s: another server has it open; give each its own --data", path)
                   : err_set(err, "%s: %s", path, sqlite3_errmsg(s->db));
    for (int i = 0; i < Q_KINDS; i++)
        if (sqlite3_prepare_v2(s->db, queries[i], -1, &s->query[i], NULL) != SQLITE_OK)
            return err_set(err, "%s: %s", path, sqlite3_errmsg(s->db));
    return 0;
}

struct jobs *jobs_open(const char *path, struct err *err)
{
    struct jobs *s = xcalloc(1, sizeof *s);
    if (sqlite3_open(path, &s->db) != SQLITE_OK) {
        err_set(err, "%s: %s", path, sqlite3_errmsg(s->db));
        goto out;
    }
    if (prepare(s, path, err) == 0)
        return s;
out:
    jobs_close(s);
    return NULL;
}

void jobs_close(struct jobs *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < Q_KINDS; i++)
        sqlite3_finalize(s->query[i]);
    sqlite3_close(s->db);
    free(s);
}

static void bind_text(sqlite3_stmt *q, int at, const char *text)
{
    sqlite3_bind_text(q, at, text, -1, SQLITE_TRANSIENT);
}

/* Run a query that gives no rows. */
static int finish(struct jobs *s, sqlite3_stmt *q, struct err *err)
{
    int rc = sqlite3_step(q) == SQLITE_DONE ? 0 : fail(s, err);
    sqlite3_reset(q);
    return rc;
}

int jobs_add(struct jobs *s, const struct job *j, struct err *err)
{
    sqlite3_stmt *q = s->query[Q_ADD];
    bind_text(q, 1, j->id);
    sqlite3_bind_int(q, 2, j->kind);
    sqlite3_bind_int(q, 3, j->state);
    bind_text(q, 4, j->name);
    bind_text(q, 5, j->order);
    sqlite3_bind_int64(q, 6, (int64_t)time(NULL));
    return finish(s, q, err);
}

static char *column_text(sqlite3_stmt *q, int at)
{
    const unsigned char *text = sqlite3_column_text(q, at);
    return text != NULL ? xstrdup((const char *)text) : NULL;
}

/* The row at which the query stands. */
static void read_row(sqlite3_stmt *q, struct job *out)
{
    *out = (struct job){
        .kind = sqlite3_column_int(q, 1),
        .state = sqlite3_column_int(q, 2),
        .name = column_text(q, 3),
        .order = column_text(q, 4),
        .message = column_text(q, 5),
        .created_s = sqlite3_column_int64(q, 6),
        .started_s = sqlite3_column_int64(q, 7),
        .ended_s = sqlite3_column_int64(q, 8),
    };
    snprintf(out->id, sizeof out->id, "%s", (const char *)sqlite3_column_text(q, 0));
}

/* Up to `max` rows; their number or -1. */
static int read_rows(struct jobs *s, sqlite3_stmt *q, struct job *out, int max, struct err *err)
{
    int n = 0, rc = SQLITE_ROW;
    while (n < max && (rc = sqlite3_step(q)) == SQLITE_ROW)
        read_row(q, &out[n++]);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        fail(s, err);
        while (n > 0)
            job_release(&out[--n]);
        n = -1;
    }
    sqlite3_reset(q);
    return n;
}

int jobs_get(struct jobs *s, enum job_kind kind, const char *id, struct job *out, struct err *err)
{
    sqlite3_stmt *q = s->query[Q_GET];
    sqlite3_bind_int(q, 1, (int)kind);
    bind_text(q, 2, id);
    return read_rows(s, q, out, 1, err);
}

int jobs_next(struct jobs *s, struct job *out, struct err *err)
{
    return read_rows(s, s->query[Q_NEXT], out, 1, err);
}

int jobs_list(struct jobs *s, enum job_kind kind, const char *before, struct job *out, int max,
              struct err *err)
{
    sqlite3_stmt *q = s->query[Q_LIST];
    sqlite3_bind_int(q, 1, (int)kind);
    sqlite3_bind_int(q, 2, max);
    bind_text(q, 3, before);
    return read_rows(s, q, out, max, err);
}

int jobs_move(struct jobs *s, const char *id, enum job_state state, const char *message,
              struct err *err)
{
    sqlite3_stmt *q = s->query[Q_MOVE];
    bind_text(q, 1, id);
    sqlite3_bind_int(q, 2, (int)state);
    bind_text(q, 3, message);
    sqlite3_bind_int64(q, 4, (int64_t)time(NULL));
    return finish(s, q, err);
}

int jobs_remove(struct jobs *s, const char *id, struct err *err)
{
    bind_text(s->query[Q_REMOVE], 1, id);
    return finish(s, s->query[Q_REMOVE], err);
}

int64_t jobs_count(struct jobs *s, enum job_kind kind, enum job_state state)
{
    sqlite3_stmt *q = s->query[Q_COUNT];
    sqlite3_bind_int(q, 1, (int)kind);
    sqlite3_bind_int(q, 2, (int)state);
    int64_t n = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : -1;
    sqlite3_reset(q);
    return n;
}

int64_t jobs_changes(struct jobs *s)
{
    return sqlite3_total_changes(s->db);
}
