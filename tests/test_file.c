/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/base/file: line ends, gzip, refusals; outputs that appear whole or not at all.
 */
#include "sim/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <zlib.h>

static char dir[64], path[128];
static struct err err;
static struct lines l;

static void enter(void)
{
    strcpy(dir, "/tmp/test_file_XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
}

/* Delete the folder; returns how many files were in it. */
static int empty_dir(void)
{
    int n = 0;
    char victim[400];
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(victim, sizeof victim, "%s/%s", dir, e->d_name);
        remove(victim);
        n++;
    }
    if (d != NULL)
        closedir(d);
    return n;
}

static void leave(void)
{
    lines_close(&l);
    empty_dir();
    rmdir(dir);
}

TestSuite(file, .init = enter, .fini = leave, .timeout = 60);

static void put(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void put_gz(const char *text, size_t n)
{
    gzFile f = gzopen(path, "w");
    cr_assert_eq(gzwrite(f, text, (unsigned)n), (int)n);
    gzclose(f);
}

static void open_put(const char *bytes, size_t n)
{
    put(bytes, n);
    cr_assert_eq(lines_open(&l, path, &err), 0, "%s", err.text);
}

static void expect_line(const char *text, long number)
{
    cr_assert_eq(lines_next(&l, &err), 1, "%s", err.text);
    cr_assert_str_eq(l.line, text);
    cr_assert_eq(l.len, strlen(text));
    cr_assert_eq(l.number, number);
}

Test(file, line_ends_of_all_kinds)
{
    static const char text[] = "\xEF\xBB\xBF"
                               "one\r\n\ntwo\rx\nlast";
    open_put(text, sizeof text - 1);
    expect_line("one", 1);
    expect_line("", 2);
    expect_line("two\rx", 3);
    expect_line("last", 4);
    cr_assert_eq(lines_next(&l, &err), 0);
    cr_assert_eq(lines_next(&l, &err), 0);
    cr_assert_eq(l.number, 4);
}

Test(file, empty_file_has_no_lines)
{
    open_put("", 0);
    cr_assert_eq(lines_next(&l, &err), 0);
}

Test(file, unread_line_comes_again)
{
    open_put("a\nb\n", 4);
    expect_line("a", 1);
    lines_unread(&l);
    expect_line("a", 1);
    expect_line("b", 2);
    lines_unread(&l);
    expect_line("b", 2);
    cr_assert_eq(lines_next(&l, &err), 0);
}

Test(file, lines_longer_than_a_block)
{
    /* around the block of 64 KiB: the line end falls before, on and behind the border */
    for (size_t n = (64 << 10) - 2; n <= (64 << 10) + 1; n++) {
        char *text = malloc(n + 4);
        memset(text, 'x', n);
        memcpy(text + n, "\nend", 4);
        open_put(text, n + 4);
        cr_assert_eq(lines_next(&l, &err), 1);
        cr_assert_eq(l.len, n);
        expect_line("end", 2);
        cr_assert_eq(lines_next(&l, &err), 0);
        lines_close(&l);
        free(text);
    }
}

Test(file, endless_line_is_refused)
{
    FILE *f = fopen(path, "w");
    fputc('a', f);
    fseek(f, LINE_BYTES_MAX, SEEK_SET);
    fputc('b', f);
    fclose(f);
    cr_assert_eq(lines_open(&l, path, &err), 0);
    cr_assert_eq(lines_next(&l, &err), -1);
    cr_assert_not_null(strstr(err.text, "/file:1: line is longer than 64 MiB"), "%s", err.text);
}

Test(file, gzip_reads_like_plain)
{
    put_gz("a\nb\n", 4);
    cr_assert_eq(lines_open(&l, path, &err), 0);
    expect_line("a", 1);
    expect_line("b", 2);
    cr_assert_eq(lines_next(&l, &err), 0);
}

/* Read to the end; returns the last answer of lines_next(). */
static int drain(void)
{
    int got;
    while ((got = lines_next(&l, &err)) == 1)
        ;
    return got;
}

static void make_gz(char **bytes, long *size)
{
    char text[4000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i % 40 == 39 ? '\n' : 'a' + i * i % 23);
    put_gz(text, sizeof text);
    FILE *f = fopen(path, "r");
    fseek(f, 0, SEEK_END);
    *size = ftell(f);
    rewind(f);
    *bytes = malloc((size_t)*size);
    cr_assert_eq(fread(*bytes, 1, (size_t)*size, f), (size_t)*size);
    fclose(f);
}

Test(file, truncated_gzip_is_an_error)
{
    char *bytes;
    long size;
    make_gz(&bytes, &size);
    for (long cut = 4; cut < size; cut++) {
        err = ERR_NONE;
        open_put(bytes, (size_t)cut);
        cr_assert_eq(drain(), -1, "cut at %ld of %ld", cut, size);
        cr_assert_not_null(strstr(err.text, "compressed file is truncated"), "%s", err.text);
        lines_close(&l);
    }
    free(bytes);
}

Test(file, damaged_gzip_is_an_error)
{
    char *bytes;
    long size;
    make_gz(&bytes, &size);
    bytes[size - 6] ^= 1; /* in the checksum */
    open_put(bytes, (size_t)size);
    cr_assert_eq(drain(), -1);
    cr_assert_not_null(strstr(err.text, "compressed file is damaged"), "%s", err.text);
    free(bytes);
}

Test(file, binary_is_refused_with_its_line)
{
    open_put("a\nb\0c\n", 6);
    expect_line("a", 1);
    cr_assert_eq(lines_next(&l, &err), -1);
    cr_assert_not_null(strstr(err.text, "/file:2: looks binary"), "%s", err.text);
}

Test(file, unreadable_inputs_are_explained)
{
    struct err empty = ERR_NONE, none = ERR_NONE, folder = ERR_NONE;
    cr_assert_eq(lines_open(&l, "", &empty), -1);
    cr_assert_not_null(strstr(empty.text, "file name is empty"));
    cr_assert_eq(lines_open(&l, "/tmp/no/such", &none), -1);
    cr_assert_str_eq(none.text, "/tmp/no/such: cannot open: No such file or directory");
    cr_assert_eq(lines_open(&l, "/tmp", &folder), -1);
    cr_assert_str_eq(folder.text, "/tmp: is a directory, expected a file");
}

Test(file, standard_input_is_a_dash)
{
    put("in\n", 3);
    cr_assert_not_null(freopen(path, "r", stdin));
    cr_assert_eq(lines_open(&l, "-", &err), 0);
    cr_assert_str_eq(l.path, "standard input");
    expect_line("in", 1);
    cr_assert_eq(lines_next(&l, &err), 0);
}

static void expect_content(const char *text)
{
    char got[64] = "";
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f);
    size_t n = fread(got, 1, sizeof got - 1, f);
    fclose(f);
    cr_assert_eq(n, strlen(text));
    cr_assert_str_eq(got, text);
}

Test(file, output_appears_on_commit_only)
{
    struct outfile o;
    put("old", 3);
    cr_assert_eq(outfile_open(&o, path, &err), 0);
    fputs("new text", o.f);
    fflush(o.f);
    expect_content("old");
    cr_assert_eq(outfile_commit(&o, &err), 0);
    expect_content("new text");
    outfile_abort(&o);
    expect_content("new text");
    cr_assert_eq(empty_dir(), 1);
}

Test(file, aborted_output_leaves_nothing)
{
    struct outfile o;
    cr_assert_eq(outfile_open(&o, path, &err), 0);
    fputs("half", o.f);
    outfile_abort(&o);
    outfile_abort(&o);
    cr_assert_eq(empty_dir(), 0);
}

Test(file, signal_handler_removes_all_open_outputs)
{
    struct outfile o[3];
    char name[160];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%d", path, i);
        cr_assert_eq(outfile_open(&o[i], name, &err), 0);
    }
    cr_assert_eq(outfile_commit(&o[1], &err), 0);
    outfile_abort_all();
    cr_assert_eq(empty_dir(), 1);
    outfile_abort(&o[0]);
    outfile_abort(&o[2]);
}

Test(file, one_file_cannot_be_two_outputs)
{
    struct outfile a, b;
    cr_assert_eq(outfile_open(&a, path, &err), 0);
    cr_assert_eq(outfile_open(&b, path, &err), -1);
    cr_assert_not_null(strstr(err.text, "is named for two outputs"), "%s", err.text);
    fputs("a", a.f);
    cr_assert_eq(outfile_commit(&a, &err), 0);
    expect_content("a");
}

Test(file, symbolic_link_stays_a_link)
{
    struct outfile o;
    struct stat st;
    char link[160];
    snprintf(link, sizeof link, "%s.link", path);
    put("old", 3);
    cr_assert_eq(symlink(path, link), 0);
    cr_assert_eq(outfile_open(&o, link, &err), 0);
    fputs("through", o.f);
    cr_assert_eq(outfile_commit(&o, &err), 0);
    expect_content("through");
    cr_assert_eq(lstat(link, &st), 0);
    cr_assert(S_ISLNK(st.st_mode));
}

Test(file, unwritable_outputs_are_explained)
{
    struct outfile o;
    struct err empty = ERR_NONE, none = ERR_NONE, folder = ERR_NONE;
    cr_assert_eq(outfile_open(&o, "", &empty), -1);
    cr_assert_eq(outfile_open(&o, "/tmp/no/such", &none), -1);
    cr_assert_str_eq(none.text,
                     "/tmp/no/such: cannot create a file there: No such file or directory");
    cr_assert_eq(none.kind, ERR_INPUT);
    cr_assert_eq(outfile_open(&o, dir, &folder), -1);
    cr_assert_not_null(strstr(folder.text, "is a directory"), "%s", folder.text);
}

Test(file, full_disk_fails_the_run)
{
    /* through a link, so that a fault in outfile cannot replace the device */
    cr_assert_eq(symlink("/dev/full", path), 0);
    for (int kib = 0; kib <= 64; kib += 64) { /* found by fflush, and by a write before it */
        struct outfile o;
        err = ERR_NONE;
        cr_assert_eq(outfile_open(&o, path, &err), 0);
        fputc('x', o.f);
        for (int i = 0; i < kib * 1024; i++)
            fputc('x', o.f);
        cr_assert_eq(outfile_commit(&o, &err), -1);
        cr_assert_not_null(strstr(err.text, "/file: cannot write: No space left on device"));
        cr_assert_eq(err.kind, ERR_INPUT);
    }
}

Test(file, pipe_is_written_in_place)
{
    struct outfile o;
    struct stat st;
    char got[8] = "";
    cr_assert_eq(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert_eq(outfile_open(&o, path, &err), 0);
    fputs("piped", o.f);
    cr_assert_eq(outfile_commit(&o, &err), 0);
    cr_assert_eq(read(fd, got, sizeof got), 5);
    cr_assert_str_eq(got, "piped");
    cr_assert_eq(stat(path, &st), 0);
    cr_assert(S_ISFIFO(st.st_mode));
    close(fd);
}
