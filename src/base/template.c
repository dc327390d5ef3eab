/* See template.h. */
#include "template.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "memory.h"
#include "option.h"

/* A run of the command's text, or a {NAME}. */
typedef struct piece {
    const char *text;
    size_t length;
    bool is_name;
    bool in_quotes; /* of a name: quotes are open where it stands */
} piece;

typedef struct scan {
    const char *at;
    char quote; /* that is open: ', " or 0 */
    bool word;  /* a character of a word came last, so that # is none of a comment */
} scan;

static size_t name_length(const char *text)
{
    size_t length = 0;
    if (isalpha((unsigned char)text[0]) || text[0] == '_')
        while (isalnum((unsigned char)text[length]) || text[length] == '_')
            length++;
    return length;
}

/* Moves over one character, or over all of a comment, and notes what it does to quotes. */
static void scan_step(scan *self)
{
    char c = *self->at++;
    bool word = self->word;
    if (self->quote) {
        if (c == '\\' && self->quote == '"' && *self->at)
            self->at++;
        else if (c == self->quote)
            self->quote = 0;
    } else if (c == '\\' && *self->at) {
        self->at++;
    } else if (c == '\'' || c == '"') {
        self->quote = c;
    } else if (c == '#' && !self->word) {
        self->at += strcspn(self->at, "\n");
    }
    bool joined = c == '\\' && !self->quote && self->at[-1] == '\n'; /* the line goes on as if nothing were there */
    self->word = joined ? word : !strchr(" \t\n;&|()<>", c);
}

/* The next piece; false at the end. */
static bool next_piece(piece *out, scan *self)
{
    const char *start = self->at;
    while (*self->at) {
        const char *at = self->at;
        size_t doubled = at[0] == '{' && at[1] == '{' ? name_length(at + 2) : 0;
        size_t length = at[0] == '{' && !(at > start && at[-1] == '$') ? name_length(at + 1) : 0;
        bool is_doubled = doubled && strncmp(at + 2 + doubled, "}}", 2) == 0;
        bool is_name = !is_doubled && length && at[1 + length] == '}';
        if ((is_doubled || is_name) && at > start)
            break; /* what stands before it comes first */
        if (is_doubled || is_name) {
            *out = (piece){.text = at + 1,
                           .length = is_doubled ? doubled + 2 : length,
                           .is_name = is_name,
                           .in_quotes = self->quote};
            self->at += is_doubled ? doubled + 4 : length + 2;
            self->word = true;
            return true;
        }
        if (at[0] == '$' && at[1] == '{')
            scan_step(self); /* ${NAME} is the shell's */
        scan_step(self);
    }
    *out = (piece){.text = start, .length = (size_t)(self->at - start)};
    return out->length > 0;
}

/* Whether the command has what opens quotes of its own, in ways that scan_step does not follow. */
static bool is_intricate(const char *command)
{
    scan self = {.at = command};
    if (strpbrk(command, "`") || strstr(command, "<<") || strstr(command, "$'"))
        return true;
    while (*self.at) {
        if (self.quote == '"' && self.at[0] == '$' && (self.at[1] == '(' || self.at[1] == '{'))
            return true;
        scan_step(&self);
    }
    return false;
}

bool base_template_is_plain(const char *text)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_./:=@%+,-", *text))
            return false;
    return true;
}

static int find_name(const base_template *names, const piece *name)
{
    for (int i = 0; i < names->names; i++)
        if (strlen(names->name[i]) == name->length && strncmp(names->name[i], name->text, name->length) == 0)
            return i;
    return -1;
}

static int unknown_name(const base_template *names, const piece *name)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)name->length, name->text);
    const char *near = base_nearest(typed, names->name, names->names);
    if (near)
        return shoal_fail(SHOAL_USAGE, "%s: {%s} is not a parameter of %s; did you mean {%s}?", names->option, typed,
                          names->source, near);
    return shoal_fail(SHOAL_USAGE, "%s: {%s} is not a parameter of %s; write {{%s}} for that text itself",
                      names->option, typed, names->source, typed);
}

int base_template_check(bool used[], bool exposed[], const base_template *names, const char *command)
{
    const bool intricate = is_intricate(command);
    scan self = {.at = command};
    for (piece piece; next_piece(&piece, &self);) {
        if (!piece.is_name)
            continue;
        const int which = find_name(names, &piece);
        if (which < 0)
            return unknown_name(names, &piece);
        used[which] = true;
        exposed[which] = exposed[which] || piece.in_quotes || intricate;
    }
    return command[strspn(command, " \t\n")] ? SHOAL_OK
                                             : shoal_fail(SHOAL_USAGE, "%s: the command is empty", names->option);
}

/* ---- filling ----------------------------------------------------------------------------------------------------- */

/* Writes to memory of the right size, or only counts when there is none yet. */
static void put_bytes(char *out, size_t *at, const char *text, size_t length)
{
    if (out)
        memcpy(out + *at, text, length);
    *at += length;
}

static void put_value(char *out, size_t *at, const char *text)
{
    if (base_template_is_plain(text)) {
        put_bytes(out, at, text, strlen(text));
        return;
    }
    put_bytes(out, at, "'", 1);
    for (; *text; text++)
        if (*text == '\'')
            put_bytes(out, at, "'\\''", 4);
        else
            put_bytes(out, at, text, 1);
    put_bytes(out, at, "'", 1);
}

static size_t fill_command(char *out, const base_template *names, const char *command, const char *const value[])
{
    scan self = {.at = command};
    size_t at = 0;
    for (piece piece; next_piece(&piece, &self);) {
        if (piece.is_name)
            put_value(out, &at, value[find_name(names, &piece)]);
        else
            put_bytes(out, &at, piece.text, piece.length);
    }
    return at;
}

int base_template_fill(char **out, const base_template *names, const char *command, const char *const value[])
{
    int status = base_alloc(out, fill_command(NULL, names, command, value) + 1, 1, "a command");
    if (status == SHOAL_OK)
        fill_command(*out, names, command, value);
    return status;
}
