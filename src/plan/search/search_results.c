/* See search_results.h. */
#include "search_results.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"
#include "data/table/data_table.h"

enum { SECONDS = PLAN_SEARCH_DIMENSIONS_MOST, COST, OUTCOME, MEANINGS };

typedef struct results {
    data_table table;
    const plan_search_space *space;
    int header_fields;
    int place[MEANINGS]; /* of the field with a dimension's value, or one of the three above; -1: not there */
    plan_trial_record *trial;
    int64_t *trial_line;
    int64_t trials;
} results;

/* ---- the first line ---------------------------------------------------------------------------------------------- */

static int meaning(const results *self, const char *name)
{
    static const char *const names[] = {"seconds", "cost", "outcome"};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            return SECONDS + i;
    return plan_search_dimension_named(self->space, name);
}

static int read_results_header(results *self, char ignored[256])
{
    int status = SHOAL_OK;
    self->header_fields = self->table.fields;
    for (int i = 0; i < MEANINGS; i++)
        self->place[i] = -1;
    for (int i = 0; i < self->header_fields && status == SHOAL_OK; i++) {
        int what = meaning(self, self->table.field[i]);
        if (what < 0) {
            size_t length = strlen(ignored);
            snprintf(ignored + length, 256 - length, "%s%s", length ? ", " : "", self->table.field[i]);
        } else if (self->place[what] >= 0)
            status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has the column %s twice", self->table.name,
                                self->table.line, self->table.field[i]);
        else
            self->place[what] = i;
    }
    for (int i = 0; i < self->space->dimensions && status == SHOAL_OK; i++)
        if (self->place[i] < 0 && self->space->dimension[i].values > 1)
            status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has no column %s", self->table.name,
                                self->table.line, self->space->dimension[i].name);
    if (status == SHOAL_OK && self->place[SECONDS] < 0)
        status =
            shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has no column seconds", self->table.name, self->table.line);
    return status;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* The field's text, or "" when the row has no such field. */
static const char *text_of(const results *self, int what)
{
    const int place = self->place[what];
    return place >= 0 && place < self->table.fields ? self->table.field[place] : "";
}

static int unknown_value(const results *self, int dimension, const char *text)
{
    const plan_search_dimension *of = &self->space->dimension[dimension];
    const char *near = of->is_text ? base_nearest(text, (const char *const *)of->text, (int)of->values) : NULL;
    if (near)
        return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s has no %s %s; did you mean %s?", self->table.name,
                          self->table.line, self->space->path, of->name, text, near);
    return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s has no %s %s", self->table.name, self->table.line,
                      self->space->path, of->name, *text ? text : "that is empty");
}

static int read_row_candidate(int64_t *out, const results *self)
{
    int64_t value[PLAN_SEARCH_DIMENSIONS_MOST] = {0};
    for (int i = 0; i < self->space->dimensions; i++) {
        if (self->place[i] < 0)
            continue;
        const char *text = text_of(self, i);
        value[i] = plan_search_value_named(&self->space->dimension[i], text);
        if (value[i] < 0)
            return unknown_value(self, i, text);
    }
    *out = plan_search_candidate(self->space, value);
    return SHOAL_OK;
}

static int read_positive(double *out, const results *self, const char *what, const char *text)
{
    if (!base_parse_real(out, text) || !isfinite(*out) || !(*out > 0))
        return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s '%s' is not a number above 0", self->table.name,
                          self->table.line, what, text);
    return SHOAL_OK;
}

static int read_row_trial(plan_trial_record *out, const results *self)
{
    const char *cost = text_of(self, COST), *outcome = text_of(self, OUTCOME);
    *out = (plan_trial_record){.told_dollars = NAN, .from_elsewhere = true};
    int status = read_row_candidate(&out->candidate, self);
    int named = *outcome ? plan_search_outcome_named(outcome) : PLAN_TRIAL_DONE;
    if (status == SHOAL_OK && named < 0)
        status =
            shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": outcome '%s' is not one of done, failed and timed out",
                       self->table.name, self->table.line, outcome);
    if (status == SHOAL_OK)
        status = read_positive(&out->seconds, self, "seconds", text_of(self, SECONDS));
    if (status == SHOAL_OK && *cost)
        status = read_positive(&out->told_dollars, self, "cost", cost);
    out->outcome = status == SHOAL_OK ? (plan_outcome)named : PLAN_TRIAL_DONE;
    snprintf(out->why, sizeof out->why, "told");
    return status;
}

static int add_results_row(results *self)
{
    plan_trial_record trial;
    int status = SHOAL_OK;
    if (self->table.fields > self->header_fields)
        status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has %d fields, more than the %d of the first",
                            self->table.name, self->table.line, self->table.fields, self->header_fields);
    if (status == SHOAL_OK)
        status = read_row_trial(&trial, self);
    for (int64_t i = 0; i < self->trials && status == SHOAL_OK; i++)
        if (self->trial[i].candidate == trial.candidate)
            status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has the configuration of line %" PRId64 " again",
                                self->table.name, self->table.line, self->trial_line[i]);
    if (status == SHOAL_OK)
        status = base_grow(&self->trial, (size_t)self->trials, (size_t)self->trials + 1, sizeof *self->trial, "trials");
    if (status == SHOAL_OK)
        status = base_grow(&self->trial_line, (size_t)self->trials, (size_t)self->trials + 1, sizeof *self->trial_line,
                           "trials");
    if (status == SHOAL_OK) {
        self->trial_line[self->trials] = self->table.line;
        self->trial[self->trials++] = trial;
    }
    return status;
}

int plan_search_results_read(plan_trial_record **out, int64_t *count, char ignored[256], const char *path,
                             const plan_search_space *space)
{
    results self = {.space = space};
    FILE *file = fopen(path, "re");
    if (!file)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    ignored[0] = '\0';
    int status = data_table_read(&self.table, path, file, "a table of results");
    while (status == SHOAL_OK && data_table_next(&status, &self.table))
        status = self.header_fields ? add_results_row(&self) : read_results_header(&self, ignored);
    if (status == SHOAL_OK && self.trials == 0)
        status = shoal_fail(SHOAL_INVALID, "%s: it has no trials", path);
    fclose(file);
    data_table_release(&self.table);
    base_free(&self.trial_line);
    if (status < 0)
        base_free(&self.trial);
    *out = self.trial;
    *count = self.trials;
    return status;
}
