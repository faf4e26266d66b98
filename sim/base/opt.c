/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/opt.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"

enum { NAME_BYTES = 64, PLACE_BYTES = 512, HELP_COLUMN = 30, HELP_WIDTH = 79 };

static void *field_of(const struct opt *o, void *settings)
{
    return (char *)settings + o->offset;
}

static bool same_name(const char *a, const char *b, size_t b_len)
{
    if (strlen(a) != b_len)
        return false;
    for (size_t i = 0; i < b_len; i++)
        if ((a[i] == '_' ? '-' : a[i]) != (b[i] == '_' ? '-' : b[i]))
            return false;
    return true;
}

static const struct opt *find(const struct opt *table, const char *name, size_t len)
{
    for (const struct opt *o = table; o->name != NULL; o++)
        if (same_name(o->name, name, len))
            return o;
    return NULL;
}

static const struct opt *find_letter(const struct opt *table, char letter)
{
    for (const struct opt *o = table; o->name != NULL; o++)
        if (o->letter != 0 && o->letter == letter)
            return o;
    return NULL;
}

/* The option's name as JSON and lists write it. */
static char *key_name(const struct opt *o, char key[NAME_BYTES])
{
    snprintf(key, NAME_BYTES, "%s", o->name);
    for (char *c = key; *c != '\0'; c++)
        if (*c == '-')
            *c = '_';
    return key;
}

/* Writes ` (did you mean "--rate"?)` or nothing; with an empty prefix the name is spelt as a key.
 */
static char *suggest(const struct opt *table, const char *word, size_t len, const char *prefix,
                     char text[PLACE_BYTES])
{
    int n = 0, count = 0;
    while (table[count].name != NULL)
        count++;
    const char **names = xcalloc((size_t)count, sizeof *names);
    for (; n < count; n++)
        names[n] = table[n].name;
    char *copy = xasprintf("%.*s", (int)len, word), key[NAME_BYTES];
    const char *near = err_nearest(copy, names, n);
    text[0] = '\0';
    if (near != NULL)
        snprintf(text, PLACE_BYTES, " (did you mean \"%s%s\"?)", prefix,
                 prefix[0] ? near : key_name(find(table, near, strlen(near)), key));
    free(copy);
    free(names);
    return text;
}

static void bounds(const struct opt *o, double *min, double *max)
{
    bool limited = o->min != 0 || o->max != 0;
    *min = limited ? o->min : -DBL_MAX;
    *max = limited ? o->max : DBL_MAX;
}

static int64_t whole_bound(double x)
{
    if (x >= 0x1p63)
        return INT64_MAX;
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

static int set_flag(bool *field, const char *place, const char *text, struct err *err)
{
    bool on = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
    if (!on && strcmp(text, "0") != 0 && strcmp(text, "false") != 0)
        return err_set(err, "%s: must be 0 or 1, got \"%s\"", place, text);
    *field = on;
    return 0;
}

static int set_enum(const struct opt *o, int *field, const char *place, const char *text,
                    struct err *err)
{
    int index = 0;
    for (const char *c = o->choices; *c != '\0'; index++) {
        size_t len = strcspn(c, "|");
        if (len == strlen(text) && memcmp(c, text, len) == 0) {
            *field = index;
            return 0;
        }
        c += len + (c[len] == '|');
    }
    return err_set(err, "%s: must be one of %s, got \"%s\"", place, o->choices, text);
}

/* A time, whose limits are in seconds, or a count of tokens. */
static int set_scaled(const struct opt *o, int64_t *field, const char *place, const char *text,
                      struct err *err)
{
    bool is_time = o->type == OPT_TIME;
    int64_t x = 0;
    if ((is_time ? units_parse_time : units_parse_tokens)(text, place, &x, err) < 0)
        return -1;
    double min, max, limited = is_time ? ps_to_s(x) : (double)x;
    char range[64];
    bounds(o, &min, &max);
    if (limited < min || limited > max)
        return err_set(err, "%s: must be %s%s, got \"%s\"", place,
                       units_range(min, max, range, sizeof range), is_time ? " s" : "", text);
    *field = x;
    return 0;
}

static void append(struct opt_list *list, const char *text)
{
    size_t cap = (size_t)list->cap;
    list->item = xgrow(list->item, &cap, (size_t)list->n + 1, sizeof *list->item);
    list->cap = (int)cap;
    list->item[list->n++] = text;
}

/* Every value passes here as text, whatever it came from; `place` opens the messages. */
static int set_text(const struct opt *o, void *settings, const char *place, const char *text,
                    struct err *err)
{
    void *field = field_of(o, settings);
    double min, max;
    bounds(o, &min, &max);
    switch (o->type) {
    case OPT_FLAG: return set_flag(field, place, text, err);
    case OPT_I64:
        return units_parse_i64(text, place, whole_bound(min), whole_bound(max), field, err);
    case OPT_F64: return units_parse_f64(text, place, min, max, field, err);
    case OPT_TIME:
    case OPT_TOKENS: return set_scaled(o, field, place, text, err);
    case OPT_ENUM: return set_enum(o, field, place, text, err);
    case OPT_STR: *(const char **)field = text; return 0;
    case OPT_LIST: append(field, text); return 0;
    }
    assert(false);
    return -1;
}

static void clear(const struct opt *o, void *settings)
{
    static const size_t size[] = {
        [OPT_FLAG] = sizeof(bool),      [OPT_I64] = sizeof(int64_t),
        [OPT_F64] = sizeof(double),     [OPT_TIME] = sizeof(int64_t),
        [OPT_TOKENS] = sizeof(int64_t), [OPT_STR] = sizeof(char *),
        [OPT_ENUM] = sizeof(int),       [OPT_LIST] = sizeof(struct opt_list),
    };
    memset(field_of(o, settings), 0, size[o->type]);
}

void opt_defaults(const struct opt *table, void *settings)
{
    for (const struct opt *o = table; o->name != NULL; o++) {
        struct err err = ERR_NONE;
        clear(o, settings);
        assert(o->def == NULL || o->type != OPT_LIST);
        int rc = o->def != NULL ? set_text(o, settings, o->name, o->def, &err) : 0;
        assert(rc == 0);
        (void)rc;
    }
}

int opt_set(const struct opt *table, void *settings, const char *name, const char *value,
            struct err *err)
{
    char text[PLACE_BYTES];
    const struct opt *o = find(table, name, strlen(name));
    if (o == NULL)
        return err_set(err, "unknown option \"--%s\"%s", name,
                       suggest(table, name, strlen(name), "--", text));
    snprintf(text, sizeof text, "--%s", o->name);
    return set_text(o, settings, text, value, err);
}

/* Parse the option at argv[*i], which starts with '-', and move *i to its last argument. */
static int parse_one(const struct opt *table, void *settings, char **argv, int *i, struct err *err)
{
    const char *arg = argv[*i];
    bool is_long = arg[1] == '-';
    const char *name = arg + 1 + is_long;
    size_t len = is_long ? strcspn(name, "=") : 1;
    const char *rest = name + len;
    const struct opt *o = is_long ? find(table, name, len) : find_letter(table, *name);
    char text[PLACE_BYTES];
    if (o == NULL && is_long)
        return err_set(err, "unknown option \"--%.*s\"%s", (int)len, name,
                       suggest(table, name, len, "--", text));
    if (o == NULL)
        return err_set(err, "unknown option \"%s\" (see --help)", arg);
    snprintf(text, sizeof text, "--%s", o->name);
    if (*rest != '\0')
        return set_text(o, settings, text, rest + (*rest == '='), err);
    if (o->type == OPT_FLAG)
        return set_text(o, settings, text, "1", err);
    if (argv[*i + 1] == NULL)
        return err_set(err, "%s: needs a value (%s)", text, o->arg ? o->arg : "see --help");
    return set_text(o, settings, text, argv[++*i], err);
}

int opt_parse_argv(const struct opt *table, void *settings, int argc, char **argv, int *n_args,
                   bool *help, struct err *err)
{
    int n = 0;
    bool options = true;
    for (int i = 1; i < argc; i++) {
        char *arg = argv[i];
        bool is_help = strcmp(arg, "--help") == 0 ||
                       (strcmp(arg, "-h") == 0 && find_letter(table, 'h') == NULL);
        if (!options || arg[0] != '-' || arg[1] == '\0') {
            argv[1 + n++] = arg;
        } else if (strcmp(arg, "--") == 0) {
            options = false;
        } else if (is_help) {
            *help = true;
            break;
        } else if (parse_one(table, settings, argv, &i, err) < 0) {
            return -1;
        }
    }
    *n_args = n;
    return 0;
}

/* The text that a scalar would have on the command line, or NULL when it has none. */
static const char *scalar_text(const json_t *value, char buf[32])
{
    switch (json_typeof(value)) {
    case JSON_STRING: return json_string_value(value);
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_INTEGER: snprintf(buf, 32, "%lld", (long long)json_integer_value(value)); return buf;
    case JSON_REAL:
        /* 15 digits read well in messages; 17 are needed when they lose the value */
        snprintf(buf, 32, "%.15g", json_real_value(value));
        if (strtod(buf, NULL) != json_real_value(value))
            snprintf(buf, 32, "%.17g", json_real_value(value));
        return buf;
    default: return NULL;
    }
}

static int set_json(const struct opt *o, void *settings, const char *place, const json_t *value,
                    struct err *err)
{
    char buf[32];
    bool textual = o->type == OPT_STR || o->type == OPT_LIST;
    const char *text = scalar_text(value, buf);
    if (text == NULL)
        return err_set(err, "%s: must be a single value, got an array or object", place);
    if (textual && !json_is_string(value))
        return err_set(err, "%s: must be a string, got %s", place, text);
    return set_text(o, settings, place, text, err);
}

/* Accepts "dwell_s" for a time option "dwell", as dumps write it. */
static const struct opt *find_key(const struct opt *table, const char *key)
{
    size_t len = strlen(key);
    const struct opt *o = find(table, key, len);
    if (o == NULL && len > 2 && strcmp(key + len - 2, "_s") == 0) {
        o = find(table, key, len - 2);
        if (o != NULL && o->type != OPT_TIME)
            o = NULL;
    }
    return o;
}

int opt_parse_json(const struct opt *table, void *settings, const char *file, json_t *obj,
                   struct err *err)
{
    const char *key;
    json_t *value, *item;
    size_t i;
    char text[PLACE_BYTES];
    if (!json_is_object(obj))
        return err_set(err, "%s: must be a JSON object of settings", file);
    json_object_foreach (obj, key, value) {
        const struct opt *o = find_key(table, key);
        if (o == NULL)
            return err_set(err, "%s: .%s: unknown key%s", file, key,
                           suggest(table, key, strlen(key), "", text));
        if (json_is_null(value))
            continue;
        snprintf(text, sizeof text, "%s: .%s", file, key);
        if (o->type != OPT_LIST || !json_is_array(value)) {
            if (set_json(o, settings, text, value, err) < 0)
                return -1;
            continue;
        }
        json_array_foreach (value, i, item) {
            if (set_json(o, settings, text, item, err) < 0)
                return -1;
        }
    }
    return 0;
}

int opt_parse_list(const struct opt *table, void *settings, const char *what, const char *text,
                   struct err *err)
{
    char place[PLACE_BYTES];
    for (const char *c = text; *c != '\0';) {
        size_t len = strcspn(c, ","), key_len = strcspn(c, "=,");
        if (key_len == len)
            return err_set(err, "%s: expected key=value, got \"%.*s\"", what, (int)len, c);
        const struct opt *o = find(table, c, key_len);
        if (o == NULL)
            return err_set(err, "%s: unknown key \"%.*s\"%s", what, (int)key_len, c,
                           suggest(table, c, key_len, "", place));
        snprintf(place, sizeof place, "%s: %.*s", what, (int)key_len, c);
        bool kept = o->type == OPT_STR || o->type == OPT_LIST;
        char *value = xasprintf("%.*s", (int)(len - key_len - 1), c + key_len + 1);
        int rc = set_text(o, settings, place, value, err);
        if (!kept)
            free(value);
        if (rc < 0)
            return -1;
        c += len + (c[len] == ',');
    }
    return 0;
}

char *opt_describe(const struct opt *o)
{
    char *text, range[64];
    size_t size;
    const char *sep = " [";
    FILE *f = open_memstream(&text, &size);
    assert(f != NULL);
    fputs(o->help, f);
    if (o->min != 0 || o->max != 0) {
        units_range(o->min, o->max, range, sizeof range);
        fprintf(f, "%s%s%s", sep, range, o->type == OPT_TIME ? " s" : "");
        sep = "; ";
    }
    if (o->choices != NULL) {
        fprintf(f, "%s%s", sep, o->choices);
        sep = "; ";
    }
    if (o->type == OPT_LIST) {
        fprintf(f, "%smay repeat", sep);
        sep = "; ";
    }
    if (o->def != NULL && o->type != OPT_FLAG) {
        fprintf(f, "%sdefault %s", sep, o->def);
        sep = "; ";
    }
    if (sep[0] == ';')
        fputc(']', f);
    fclose(f);
    return text;
}

/* Print `text` from HELP_COLUMN on, broken at blanks; the cursor is at `column`. */
static void print_wrapped(FILE *out, int column, const char *text)
{
    int indent = HELP_COLUMN - column;
    while (*text != '\0') {
        int room = HELP_WIDTH - HELP_COLUMN, len = (int)strlen(text);
        if (len > room) {
            for (len = room; len > 0 && text[len] != ' '; len--)
                ;
            if (len == 0)
                len = (int)strcspn(text, " ");
        }
        fprintf(out, "%*s%.*s\n", indent, "", len, text);
        indent = HELP_COLUMN;
        text += len + (text[len] == ' ');
    }
}

static void print_entry(FILE *out, char letter, const char *name, const char *arg, const char *text)
{
    char shortly[8] = "   ";
    if (letter != 0)
        snprintf(shortly, sizeof shortly, "-%c,", letter);
    int column = fprintf(out, "  %s --%s%s%s", shortly, name, arg ? " " : "", arg ? arg : "");
    if (column > HELP_COLUMN - 2) {
        fputc('\n', out);
        column = 0;
    }
    print_wrapped(out, column, text);
}

void opt_help(const struct opt *table, FILE *out)
{
    for (const struct opt *o = table; o->name != NULL; o++) {
        char *text = opt_describe(o);
        print_entry(out, o->letter, o->name, o->arg, text);
        free(text);
    }
    print_entry(out, find_letter(table, 'h') ? 0 : 'h', "help", NULL, "print this text and exit");
}

static json_t *dump_string(const char *s)
{
    json_t *value = json_string(s);
    return value != NULL ? value : json_string("(not UTF-8)");
}

static json_t *dump_list(const struct opt_list *list)
{
    json_t *array = json_array();
    for (int i = 0; i < list->n; i++)
        json_array_append_new(array, dump_string(list->item[i]));
    return array;
}

static json_t *dump_choice(const char *choices, int index)
{
    const char *c = choices;
    for (; index > 0; index--)
        c += strcspn(c, "|") + 1;
    return json_stringn(c, strcspn(c, "|"));
}

static json_t *dump_value(const struct opt *o, const void *field)
{
    switch (o->type) {
    case OPT_FLAG: return json_boolean(*(const bool *)field);
    case OPT_I64:
    case OPT_TOKENS: return json_integer(*(const int64_t *)field);
    case OPT_F64: return json_num(*(const double *)field);
    case OPT_TIME: return json_num(ps_to_s(*(const int64_t *)field));
    case OPT_ENUM: return dump_choice(o->choices, *(const int *)field);
    case OPT_LIST: return dump_list(field);
    case OPT_STR: {
        const char *s = *(const char *const *)field;
        return s != NULL ? dump_string(s) : json_null();
    }
    }
    assert(false);
    return NULL;
}

json_t *opt_dump(const struct opt *table, const void *settings)
{
    json_t *obj = json_object();
    for (const struct opt *o = table; o->name != NULL; o++) {
        char name[NAME_BYTES], key[NAME_BYTES + 2];
        snprintf(key, sizeof key, "%s%s", key_name(o, name), o->type == OPT_TIME ? "_s" : "");
        json_object_set_new(obj, key, dump_value(o, (const char *)settings + o->offset));
    }
    return obj;
}

void opt_release(const struct opt *table, void *settings)
{
    for (const struct opt *o = table; o->name != NULL; o++) {
        if (o->type == OPT_LIST) {
            struct opt_list *list = field_of(o, settings);
            free(list->item);
            *list = (struct opt_list){0};
        }
    }
}
