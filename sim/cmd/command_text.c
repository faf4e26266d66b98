/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/command_text.h"

#include <stdio.h>
#include <string.h>

static const char plain[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%^";

static void write_quoted(const char *word, FILE *f)
{
    fputc('\'', f);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs("'\\''", f);
        else
            fputc(*word, f);
    }
    fputc('\'', f);
}

char *command_text(int argc, char *const *argv)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs("wavetank", f);
    for (int i = 0; i < argc; i++) {
        fputc(' ', f);
        if (argv[i][0] != '\0' && argv[i][strspn(argv[i], plain)] == '\0')
            fputs(argv[i], f);
        else
            write_quoted(argv[i], f);
    }
    fclose(f);
    return text;
}
