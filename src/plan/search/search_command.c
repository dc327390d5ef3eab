/* See search_command.h.
 *
 * A value with nothing but letters, digits and a few signs means itself wherever the shell meets it.  Any other is put
 * between single quotes, which is right only where no quotes are open; so where that is not certain, such a value is
 * refused rather than guessed about. */
#include "search_command.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"

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

/* Whether the command has what opens quotes of its own, in ways that `step` does not follow. */
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

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_./:=@%+,-", *text))
            return false;
    return true;
}

static int dimension_of(const plan_search_space *space, const piece *name)
{
    for (int i = 0; i < space->dimensions; i++)
        if (strlen(space->dimension[i].name) == name->length &&
            strncmp(space->dimension[i].name, name->text, name->length) == 0)
            return i;
    return -1;
}

static int unknown_name(const plan_search_space *space, const piece *name)
{
    const char *names[PLAN_SEARCH_DIMENSIONS_MOST];
    char typed[64];
    for (int i = 0; i < space->dimensions; i++)
        names[i] = space->dimension[i].name;
    snprintf(typed, sizeof typed, "%.*s", (int)name->length, name->text);
    const char *near = base_nearest(typed, names, space->dimensions);
    if (near)
        return shoal_fail(SHOAL_USAGE, "--run: {%s} is not a parameter of %s; did you mean {%s}?", typed, space->path,
                          near);
    return shoal_fail(SHOAL_USAGE, "--run: {%s} is not a parameter of %s; write {{%s}} for that text itself", typed,
                      space->path, typed);
}

int plan_search_command_check(const plan_search_space *space, const char *command)
{
    bool used[PLAN_SEARCH_DIMENSIONS_MOST] = {0}, intricate = is_intricate(command);
    scan self = {.at = command};
    for (piece piece; next_piece(&piece, &self);) {
        if (!piece.is_name)
            continue;
        int which = dimension_of(space, &piece);
        if (which < 0)
            return unknown_name(space, &piece);
        used[which] = true;
        for (int64_t i = 0; i < space->dimension[which].values; i++)
            if ((piece.in_quotes || intricate) && !is_plain(space->dimension[which].text[i]))
                return shoal_fail(SHOAL_USAGE,
                                  "--run: {%s} stands between quotes or in a command with ` or <<, where its value "
                                  "'%s' can't be quoted: separate it from other text",
                                  space->dimension[which].name, space->dimension[which].text[i]);
    }
    for (int i = 0; i < space->dimensions; i++)
        if (!used[i] && space->dimension[i].values > 1)
            return shoal_fail(SHOAL_USAGE, "--run: the command does not use {%s}, which has %lld values in %s",
                              space->dimension[i].name, (long long)space->dimension[i].values, space->path);
    return command[strspn(command, " \t\n")] ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "--run: the command is empty");
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
    if (is_plain(text)) {
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

static size_t fill_command(char *out, const plan_search_space *space, const char *command, int64_t candidate)
{
    scan self = {.at = command};
    size_t at = 0;
    for (piece piece; next_piece(&piece, &self);) {
        if (piece.is_name)
            put_value(out, &at, plan_search_text(space, candidate, dimension_of(space, &piece)));
        else
            put_bytes(out, &at, piece.text, piece.length);
    }
    return at;
}

int plan_search_command_fill(char **out, const plan_search_space *space, const char *command, int64_t candidate)
{
    int status = base_alloc(out, fill_command(NULL, space, command, candidate) + 1, 1, "a command");
    if (status == SHOAL_OK)
        fill_command(*out, space, command, candidate);
    return status;
}
