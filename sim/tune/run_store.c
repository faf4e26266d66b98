/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/run_store.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

enum { FORMAT = 1, APPLICATION_ID = 0x77766e6b, BUSY_MS = 60000, LABELS = 8 };

/* The columns before the metrics; "seed" is the only number. */
static const char *const labels[LABELS] = {"key",     "wavetank", "model", "cluster",
                                           "profile", "trace",    "seed",  "policy"};

enum { AT_SEED = 6, AT_SETTINGS = LABELS, AT_METRICS };

struct run_store {
    sqlite3 *db;
    char *path;
    bool reads; /* only */
    sqlite3_stmt *find, *add, *add_wall;
};

/* What SQLite says, in words of files. */
static int fail(struct run_store *s, struct err *err)
{
    int code = sqlite3_errcode(s->db) & 0xff, extended = sqlite3_extended_errcode(s->db);
    const char *text = sqlite3_errmsg(s->db);
    if (code == SQLITE_FULL || extended == SQLITE_IOERR_WRITE || extended == SQLITE_IOERR_SHMSIZE)
        return err_set(err,
                       "%s: cannot be written, is the disk full? (%s); finished runs are kept: "
                       "make room, and the same command goes on from there",
                       s->path, text);
    if (s->reads && code == SQLITE_CANTOPEN)
        return err_set(err, "%s: cannot open: no such file, or not to be read", s->path);
    if (code == SQLITE_READONLY || code == SQLITE_PERM || code == SQLITE_CANTOPEN)
        return err_set(err, "%s: %s; the file and its folder must be writable", s->path, text);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return err_set(err, "%s: is no sound SQLite file (%s)", s->path, text);
    if (code == SQLITE_BUSY)
        return err_set(err, "%s: another process has kept it locked for a minute", s->path);
    return err_set(err, "%s: %s", s->path, text);
}

static int execute(struct run_store *s, const char *sql, struct err *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(s, err);
}

static int prepare(struct run_store *s, sqlite3_stmt **statement, const char *sql, struct err *err)
{
    return sqlite3_prepare_v2(s->db, sql, -1, statement, NULL) == SQLITE_OK ? 0 : fail(s, err);
}

static int read_number(struct run_store *s, const char *sql, int64_t *number, struct err *err)
{
    sqlite3_stmt *statement;
    if (prepare(s, &statement, sql, err) < 0)
        return -1;
    int rc = sqlite3_step(statement) == SQLITE_ROW ? 0 : fail(s, err);
    if (rc == 0)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc;
}

/* "key,wavetank,...,settings,requests,...", or "?,?,..." when `names` is false; to be freed. */
static char *columns(bool names)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert(f != NULL);
    for (int i = 0; i < LABELS; i++)
        fprintf(f, "%s,", names ? labels[i] : "?");
    fputs(names ? "settings" : "?", f);
    for (int i = 0; i < METRIC_COUNT; i++)
        fprintf(f, ",%s", names ? metric_table[i].name : "?");
    fclose(f);
    return text;
}

static char *schema(void)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert(f != NULL);
    fputs("CREATE TABLE run(key TEXT PRIMARY KEY", f);
    for (int i = 1; i < LABELS; i++)
        fprintf(f, ",%s %s NOT NULL", labels[i], i == AT_SEED ? "INTEGER" : "TEXT");
    fputs(",settings TEXT NOT NULL", f);
    for (int i = 0; i < METRIC_COUNT; i++)
        fprintf(f, ",%s %s NOT NULL", metric_table[i].name,
                metric_table[i].whole ? "INTEGER" : "REAL");
    fprintf(f,
            ")WITHOUT ROWID;"
            "CREATE TABLE wall(key TEXT PRIMARY KEY,wall_ns INTEGER NOT NULL)WITHOUT ROWID;"
            "PRAGMA application_id=%d;PRAGMA user_version=%d;",
            APPLICATION_ID, FORMAT);
    fclose(f);
    return text;
}

static int check_format(struct run_store *s, int64_t application, struct err *err)
{
    int64_t format = 0;
    if (application != APPLICATION_ID)
        return err_set(err, "%s: is a database, but not one of wavetank's", s->path);
    if (read_number(s, "PRAGMA user_version", &format, err) < 0)
        return -1;
    return format == FORMAT ? 0
                            : err_set(err,
                                      "%s: has format %lld, this program knows %d; use another "
                                      "file, or the program that made it",
                                      s->path, (long long)format, FORMAT);
}

/* A file without tables becomes a store; under a lock, since another process may do the same. */
static int make_or_check(struct run_store *s, struct err *err)
{
    int64_t tables = 0, application = 0;
    if (execute(s, "BEGIN IMMEDIATE", err) < 0 ||
        read_number(s, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0 ||
        read_number(s, "PRAGMA application_id", &application, err) < 0)
        return -1;
    if (tables > 0 || application != 0)
        return check_format(s, application, err) < 0 ? -1 : execute(s, "COMMIT", err);
    char *sql = schema();
    int rc = execute(s, sql, err);
    free(sql);
    return rc < 0 ? -1 : execute(s, "COMMIT", err);
}

static int prepare_all(struct run_store *s, struct err *err)
{
    char *names = columns(true), *places = columns(false);
    char *find = xasprintf("SELECT %s FROM run WHERE key=?", names);
    char *add = xasprintf("INSERT OR IGNORE INTO run(%s) VALUES(%s)", names, places);
    int rc = prepare(s, &s->find, find, err);
    if (rc == 0)
        rc = prepare(s, &s->add, add, err);
    if (rc == 0)
        rc = prepare(s, &s->add_wall, "INSERT OR IGNORE INTO wall VALUES(?,?)", err);
    free(find);
    free(add);
    free(names);
    free(places);
    return rc;
}

static struct run_store *open_file(const char *path, int flags, struct err *err)
{
    struct run_store *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    s->reads = (flags & SQLITE_OPEN_READONLY) != 0;
    /* A path that begins with ':' or is empty would not be a file to SQLite. */
    char *file = xasprintf("%s%s", path[0] == '/' ? "" : "./", path);
    int rc = sqlite3_open_v2(file, &s->db, flags, NULL);
    free(file);
    if (rc != SQLITE_OK) {
        fail(s, err);
        run_store_close(s);
        return NULL;
    }
    sqlite3_busy_timeout(s->db, BUSY_MS);
    return s;
}

/* Where another process does the same, SQLite does not wait by itself: both would wait for ever. */
static int keep_a_log(struct run_store *s, struct err *err)
{
    enum { RETRY_MS = 20 };
    int rc = SQLITE_BUSY;
    for (int waited_ms = 0; rc == SQLITE_BUSY && waited_ms < BUSY_MS; waited_ms += RETRY_MS) {
        if (waited_ms > 0)
            sqlite3_sleep(RETRY_MS);
        rc = sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
    }
    return rc == SQLITE_OK ? 0 : fail(s, err);
}

static int set_up(struct run_store *s, struct err *err)
{
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return err_set(err, "%s: is read-only; make it writable or name another file", s->path);
    /* NORMAL: a killed process loses nothing; a power failure may lose the last rows. */
    if (keep_a_log(s, err) < 0 || execute(s, "PRAGMA synchronous=NORMAL", err) < 0 ||
        make_or_check(s, err) < 0)
        return -1;
    return prepare_all(s, err);
}

struct run_store *run_store_open(const char *path, struct err *err)
{
    struct run_store *s = open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (s != NULL && set_up(s, err) < 0) {
        run_store_close(s);
        return NULL;
    }
    return s;
}

struct run_store *run_store_open_to_read(const char *path, struct err *err)
{
    int64_t application = 0;
    struct run_store *s = open_file(path, SQLITE_OPEN_READONLY, err);
    if (s != NULL && (read_number(s, "PRAGMA application_id", &application, err) < 0 ||
                      check_format(s, application, err) < 0)) {
        run_store_close(s);
        return NULL;
    }
    return s;
}

void run_store_close(struct run_store *s)
{
    if (s == NULL)
        return;
    sqlite3_finalize(s->find);
    sqlite3_finalize(s->add);
    sqlite3_finalize(s->add_wall);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

static void read_metrics(sqlite3_stmt *statement, struct metrics *m)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        m->value[i] = sqlite3_column_double(statement, AT_METRICS + i);
}

int run_store_find(struct run_store *s, const char *key, struct metrics *m, struct err *err)
{
    sqlite3_bind_text(s->find, 1, key, -1, SQLITE_TRANSIENT);
    int rc = sqlite3_step(s->find);
    if (rc == SQLITE_ROW)
        read_metrics(s->find, m);
    int found = rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : fail(s, err);
    sqlite3_reset(s->find);
    return found;
}

static void bind_row(sqlite3_stmt *statement, const struct run_row *row)
{
    const char *const text[LABELS] = {row->key,     row->version, row->model, row->cluster,
                                      row->profile, row->trace,   NULL,       row->policy};
    for (int i = 0; i < LABELS; i++)
        if (i != AT_SEED)
            sqlite3_bind_text(statement, i + 1, text[i], -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, AT_SEED + 1, row->seed);
    sqlite3_bind_text(statement, AT_SETTINGS + 1, row->settings, -1, SQLITE_STATIC);
    for (int i = 0; i < METRIC_COUNT; i++) {
        double x = row->metrics.value[i];
        if (metric_table[i].whole)
            sqlite3_bind_int64(statement, AT_METRICS + i + 1, (int64_t)x);
        else
            sqlite3_bind_double(statement, AT_METRICS + i + 1, x);
    }
}

static int step_once(struct run_store *s, sqlite3_stmt *statement, struct err *err)
{
    int rc = sqlite3_step(statement) == SQLITE_DONE ? 0 : fail(s, err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return rc;
}

int run_store_add(struct run_store *s, const struct run_row *row, struct err *err)
{
    if (execute(s, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    bind_row(s->add, row);
    sqlite3_bind_text(s->add_wall, 1, row->key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s->add_wall, 2, (int64_t)row->wall_ns);
    int rc = step_once(s, s->add, err);
    if (rc == 0)
        rc = step_once(s, s->add_wall, err);
    if (rc == 0)
        rc = execute(s, "COMMIT", err);
    if (rc < 0)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static const char *text_at(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text != NULL ? (const char *)text : "";
}

static void read_row(sqlite3_stmt *st, struct run_row *row)
{
    *row = (struct run_row){
        .version = text_at(st, 1),
        .model = text_at(st, 2),
        .cluster = text_at(st, 3),
        .profile = text_at(st, 4),
        .trace = text_at(st, 5),
        .policy = text_at(st, 7),
        .settings = text_at(st, AT_SETTINGS),
        .seed = sqlite3_column_int64(st, AT_SEED),
        .wall_ns = (uint64_t)sqlite3_column_int64(st, AT_METRICS + METRIC_COUNT),
    };
    snprintf(row->key, sizeof row->key, "%s", text_at(st, 0));
    read_metrics(st, &row->metrics);
}

int run_store_each(struct run_store *s,
                   int (*take)(void *context, const struct run_row *row, struct err *err),
                   void *context, struct err *err)
{
    char *names = columns(true);
    char *sql =
        xasprintf("SELECT %s,wall_ns FROM run LEFT JOIN wall USING(key) ORDER BY key", names);
    sqlite3_stmt *statement;
    int rc = prepare(s, &statement, sql, err), got = SQLITE_DONE;
    free(sql);
    free(names);
    if (rc < 0)
        return -1;
    while (rc == 0 && (got = sqlite3_step(statement)) == SQLITE_ROW) {
        struct run_row row;
        read_row(statement, &row);
        rc = take(context, &row, err);
    }
    if (rc == 0 && got != SQLITE_DONE)
        rc = fail(s, err);
    sqlite3_finalize(statement);
    return rc;
}
