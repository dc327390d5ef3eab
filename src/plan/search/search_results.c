/* See search_results.h. */
#include "search_results.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"

enum { FIELDS_MOST = 256, SECONDS = PLAN_SEARCH_DIMENSIONS_MOST, COST, OUTCOME, MEANINGS };

typedef struct table {
    const char *path;
    const plan_search_space *space;
    int64_t line;
    int fields; /* of the first line */
    char *field[FIELDS_MOST];
    int place[MEANINGS]; /* of the field with a dimension's value, or one of the three above; -1: not there */
    plan_trial_record *trial;
    int64_t *trial_line;
    int64_t trials;
} table;

/* Ends a field in place and takes quotes and blanks away; returns where the next one starts, or NULL behind the
 * last. */
static char *cut_field(char **out, char *at)
{
    at += strspn(at, " \t");
    char *to = at, *from = at;
    *out = at;
    if (*from == '"') {
        for (from++; *from && !(*from == '"' && from[1] != '"'); *to++ = *from++)
            from += *from == '"';
        from += *from == '"';
        from += strcspn(from, ",");
    } else {
        from += strcspn(from, ",");
        to = from;
        while (to > *out && strchr(" \t\r\n", to[-1]))
            to--;
    }
    bool more = *from == ',';
    *to = '\0';
    return more ? from + 1 : NULL;
}

static int split(table *self, char *line, int *fields)
{
    line[strcspn(line, "\r\n")] = '\0';
    *fields = 0;
    for (char *at = line; at;) {
        if (*fields == FIELDS_MOST)
            return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has more than %d fields", self->path, self->line,
                              FIELDS_MOST);
        at = cut_field(&self->field[(*fields)++], at);
    }
    return SHOAL_OK;
}

/* ---- the first line ---------------------------------------------------------------------------------------------- */

static int meaning(const table *self, const char *name)
{
    static const char *const names[] = {"seconds", "cost", "outcome"};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            return SECONDS + i;
    return plan_search_dimension_named(self->space, name);
}

static int read_header(table *self, char *line, char ignored[256])
{
    int status = split(self, line, &self->fields);
    for (int i = 0; i < MEANINGS; i++)
        self->place[i] = -1;
    for (int i = 0; i < self->fields && status == SHOAL_OK; i++) {
        int what = meaning(self, self->field[i]);
        if (what < 0) {
            size_t length = strlen(ignored);
            snprintf(ignored + length, 256 - length, "%s%s", length ? ", " : "", self->field[i]);
        } else if (self->place[what] >= 0)
            status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has the column %s twice", self->path, self->line,
                                self->field[i]);
        else
            self->place[what] = i;
    }
    for (int i = 0; i < self->space->dimensions && status == SHOAL_OK; i++)
        if (self->place[i] < 0 && self->space->dimension[i].values > 1)
            status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has no column %s", self->path, self->line,
                                self->space->dimension[i].name);
    if (status == SHOAL_OK && self->place[SECONDS] < 0)
        status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has no column seconds", self->path, self->line);
    return status;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* The field's text, or "" when the row has no such field. */
static const char *text_of(const table *self, int what, int fields)
{
    return self->place[what] >= 0 && self->place[what] < fields ? self->field[self->place[what]] : "";
}

static int unknown_value(const table *self, int dimension, const char *text)
{
    const plan_search_dimension *of = &self->space->dimension[dimension];
    const char *near = of->is_text ? base_nearest(text, (const char *const *)of->text, (int)of->values) : NULL;
    if (near)
        return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s has no %s %s; did you mean %s?", self->path,
                          self->line, self->space->path, of->name, text, near);
    return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s has no %s %s", self->path, self->line, self->space->path,
                      of->name, *text ? text : "that is empty");
}

static int read_candidate(int64_t *out, const table *self, int fields)
{
    int64_t value[PLAN_SEARCH_DIMENSIONS_MOST] = {0};
    for (int i = 0; i < self->space->dimensions; i++) {
        if (self->place[i] < 0)
            continue;
        const char *text = text_of(self, i, fields);
        value[i] = plan_search_value_named(&self->space->dimension[i], text);
        if (value[i] < 0)
            return unknown_value(self, i, text);
    }
    *out = plan_search_candidate(self->space, value);
    return SHOAL_OK;
}

static int read_positive(double *out, const table *self, const char *what, const char *text)
{
    if (!base_parse_real(out, text) || !isfinite(*out) || !(*out > 0))
        return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s '%s' is no number more than 0", self->path,
                          self->line, what, text);
    return SHOAL_OK;
}

static int read_trial(plan_trial_record *out, const table *self, int fields)
{
    const char *cost = text_of(self, COST, fields), *outcome = text_of(self, OUTCOME, fields);
    *out = (plan_trial_record){.told_dollars = NAN, .from_elsewhere = true};
    int status = read_candidate(&out->candidate, self, fields);
    int named = *outcome ? plan_search_outcome_named(outcome) : PLAN_TRIAL_DONE;
    if (status == SHOAL_OK && named < 0)
        status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": outcome '%s' is none of done, failed and timed out",
                            self->path, self->line, outcome);
    if (status == SHOAL_OK)
        status = read_positive(&out->seconds, self, "seconds", text_of(self, SECONDS, fields));
    if (status == SHOAL_OK && *cost)
        status = read_positive(&out->told_dollars, self, "cost", cost);
    out->outcome = status == SHOAL_OK ? (plan_outcome)named : PLAN_TRIAL_DONE;
    snprintf(out->why, sizeof out->why, "told");
    return status;
}

static int add_row(table *self, char *line)
{
    int fields = 0;
    plan_trial_record trial;
    int status = split(self, line, &fields);
    if (status == SHOAL_OK && fields > self->fields)
        status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has %d fields, more than the %d of the first",
                            self->path, self->line, fields, self->fields);
    if (status == SHOAL_OK)
        status = read_trial(&trial, self, fields);
    for (int64_t i = 0; i < self->trials && status == SHOAL_OK; i++)
        if (self->trial[i].candidate == trial.candidate)
            status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has the configuration of line %" PRId64 " again",
                                self->path, self->line, self->trial_line[i]);
    if (status == SHOAL_OK)
        status = base_grow(&self->trial, (size_t)self->trials, (size_t)self->trials + 1, sizeof *self->trial, "trials");
    if (status == SHOAL_OK)
        status = base_grow(&self->trial_line, (size_t)self->trials, (size_t)self->trials + 1, sizeof *self->trial_line,
                           "trials");
    if (status == SHOAL_OK) {
        self->trial_line[self->trials] = self->line;
        self->trial[self->trials++] = trial;
    }
    return status;
}

int plan_search_results_read(plan_trial_record **out, int64_t *count, char ignored[256], const char *path,
                             const plan_search_space *space)
{
    table self = {.path = path, .space = space};
    char *line = NULL;
    size_t room = 0;
    int status = SHOAL_OK;
    FILE *file = fopen(path, "re");
    if (!file)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    ignored[0] = '\0';
    while (status == SHOAL_OK && getline(&line, &room, file) >= 0) {
        char *text = line;
        if (++self.line == 1 && strncmp(text, "\xef\xbb\xbf", 3) == 0)
            text += 3;
        if (text[strspn(text, " \t\r\n")] == '\0' || *text == '#')
            continue;
        status = self.fields ? add_row(&self, text) : read_header(&self, text, ignored);
    }
    if (status == SHOAL_OK && ferror(file))
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (status == SHOAL_OK && self.trials == 0)
        status = shoal_fail(SHOAL_INVALID, "%s: there are no trials in it", path);
    fclose(file);
    free(line);
    base_free(&self.trial_line);
    if (status < 0)
        base_free(&self.trial);
    *out = self.trial;
    *count = self.trials;
    return status;
}
