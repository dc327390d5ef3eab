/* Text becomes a table of what was measured: rows are collected with the numbers of their
 * machine and workload, and then put together by cells, one for each workload and candidate. */
#include "search_table.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"
#include "data/table/data_table.h"

enum { SHOWN = 60, NODES_MOST = 1000000 };

typedef enum column { NODES, VM, WORKLOAD, FRAMEWORK, INPUT, RUN, COMPLETED, ELAPSED, COLUMNS } column;
static const struct {
    const char *name;
    bool needed;
} columns[COLUMNS] = {{"nodes", true},  {"vm", true},   {"workload", true},   {"framework", false},
                      {"input", false}, {"run", false}, {"completed", false}, {"elapsed_time", true}};

typedef struct row {
    int64_t workload, candidate, line;
    const char *run; /* NULL: the table does not number them */
    bool completed;
    double seconds;
    int64_t next; /* row of the same cell, plus 1 */
} row;

typedef struct reader {
    const char *path;
    const plan_prices *prices;
    data_table text;
    int place[COLUMNS]; /* -1: the table lacks it */
    row *row;
    int64_t rows, row_room;
    int64_t *machine_of; /* of each candidate: index in prices */
    int64_t candidate_room, workload_room;
    plan_table *table;
} reader;

/* ---- the header -------------------------------------------------------------------------------------------------- */

static int read_header(reader *r)
{
    int status = SHOAL_OK;
    if (!data_table_next(&status, &r->text))
        return status < 0 ? status : shoal_fail(SHOAL_INVALID, "%s is empty", r->path);
    for (int c = 0; c < COLUMNS; c++) {
        r->place[c] = -1;
        for (int i = 0; i < r->text.fields; i++) {
            if (strcasecmp(r->text.field[i], columns[c].name) != 0)
                continue;
            if (r->place[c] >= 0)
                return shoal_fail(SHOAL_INVALID, "%s: line %lld has the column %s twice", r->path,
                                  (long long)r->text.line, columns[c].name);
            r->place[c] = i;
        }
        if (columns[c].needed && r->place[c] < 0)
            return shoal_fail(SHOAL_INVALID, "%s: line %lld names no column %s, which a table of runs has", r->path,
                              (long long)r->text.line, columns[c].name);
    }
    return SHOAL_OK;
}

static const char *field_of(const reader *r, column c)
{
    return r->place[c] < 0 ? "" : r->text.field[r->place[c]];
}

static int bad_field(const reader *r, column c, const char *what)
{
    return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s is '%.*s', %s", r->path, (long long)r->text.line,
                      columns[c].name, SHOWN, field_of(r, c), what);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int find_machine(int64_t *out, const reader *r)
{
    const plan_prices *prices = r->prices;
    *out = -1;
    for (int64_t i = 0; i < prices->machines; i++) {
        if (strcmp(prices->machine[i].name, field_of(r, VM)) != 0)
            continue;
        if (*out >= 0)
            return shoal_fail(SHOAL_INVALID,
                              "%s: line %lld: %s is in %s twice, at lines %lld and %lld: give prices of one region",
                              r->path, (long long)r->text.line, field_of(r, VM), prices->name,
                              (long long)prices->machine[*out].line, (long long)prices->machine[i].line);
        *out = i;
    }
    if (*out < 0)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s has no machine '%.*s'", r->path, (long long)r->text.line,
                          prices->name, SHOWN, field_of(r, VM));
    if (!(prices->machine[*out].dollars_per_hour > 0))
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s has no price for %s", r->path, (long long)r->text.line,
                          prices->name, field_of(r, VM));
    return SHOAL_OK;
}

static int grow(void *inout, int64_t count, int64_t *room, size_t size)
{
    if (count < *room)
        return SHOAL_OK;
    const int64_t wider = *room ? 2 * *room : 64;
    int status = base_grow(inout, (size_t)*room, (size_t)wider, size, "a table");
    if (status == SHOAL_OK)
        *room = wider;
    return status;
}

static int find_candidate(int64_t *out, reader *r, int64_t nodes)
{
    plan_table *table = r->table;
    int64_t machine = 0;
    int status = find_machine(&machine, r);
    if (status < 0)
        return status;
    for (*out = 0; *out < table->space.candidates; ++*out)
        if (r->machine_of[*out] == machine && table->candidate[*out].count == nodes)
            return SHOAL_OK;
    int64_t same = r->candidate_room;
    status = grow(&r->machine_of, *out, &same, sizeof *r->machine_of);
    if (status == SHOAL_OK)
        status = grow(&table->candidate, *out, &r->candidate_room, sizeof *table->candidate);
    if (status < 0)
        return status;
    r->machine_of[*out] = machine;
    plan_candidate_describe(&table->candidate[*out], &r->prices->machine[machine], nodes);
    table->space.candidates++;
    return SHOAL_OK;
}

static int find_workload(int64_t *out, reader *r)
{
    plan_table *table = r->table;
    char *name = NULL;
    const char *framework = field_of(r, FRAMEWORK), *input = field_of(r, INPUT);
    int status = base_format(&name, "%s%s%s%s%s", field_of(r, WORKLOAD), *framework ? "/" : "", framework,
                             *input ? "/" : "", input);
    if (status < 0)
        return status;
    for (*out = 0; *out < table->workloads; ++*out)
        if (strcmp(table->workload[*out].name, name) == 0) {
            base_free(&name);
            return SHOAL_OK;
        }
    status = grow(&table->workload, *out, &r->workload_room, sizeof *table->workload);
    if (status < 0)
        base_free(&name);
    else
        table->workload[table->workloads++].name = name;
    return status;
}

static bool parse_truth(bool *out, const char *text)
{
    static const char *const word[] = {"true", "false", "1", "0", "yes", "no"};
    for (int i = 0; i < 6; i++)
        if (strcasecmp(text, word[i]) == 0) {
            *out = i % 2 == 0;
            return true;
        }
    return false;
}

static int read_row(reader *r)
{
    double nodes = 0;
    row next = {.line = r->text.line, .completed = true};
    for (int c = 0; c < COLUMNS; c++)
        if (r->place[c] >= r->text.fields)
            return shoal_fail(SHOAL_INVALID, "%s: line %lld has %d fields, and %s would be field %d", r->path,
                              (long long)r->text.line, r->text.fields, columns[c].name, r->place[c] + 1);
    if (!base_parse_real(&nodes, field_of(r, NODES)) || !isfinite(nodes) || nodes < 1 || nodes > NODES_MOST ||
        nodes != floor(nodes))
        return bad_field(r, NODES, "not a number of machines");
    if (!base_parse_real(&next.seconds, field_of(r, ELAPSED)) || !isfinite(next.seconds) || next.seconds <= 0)
        return bad_field(r, ELAPSED, "not a number of seconds above 0");
    if (!*field_of(r, WORKLOAD))
        return bad_field(r, WORKLOAD, "which is not a name");
    if (r->place[COMPLETED] >= 0 && !parse_truth(&next.completed, field_of(r, COMPLETED)))
        return bad_field(r, COMPLETED, "neither True nor False");
    next.run = r->place[RUN] >= 0 ? field_of(r, RUN) : NULL;
    int status = find_candidate(&next.candidate, r, (int64_t)nodes);
    if (status == SHOAL_OK)
        status = find_workload(&next.workload, r);
    if (status == SHOAL_OK)
        status = grow(&r->row, r->rows, &r->row_room, sizeof *r->row);
    if (status == SHOAL_OK)
        r->row[r->rows++] = next;
    return status;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Puts rows of one workload and candidate into a list; `first` has row numbers plus 1. */
static int link_rows(reader *r, int64_t *first)
{
    for (int64_t i = 0; i < r->rows; i++) {
        row *own = &r->row[i];
        int64_t *head = &first[own->workload * r->table->space.candidates + own->candidate];
        for (int64_t other = *head; other > 0; other = r->row[other - 1].next)
            if (own->run && strcmp(own->run, r->row[other - 1].run) == 0)
                return shoal_fail(SHOAL_INVALID, "%s: line %lld has the run of line %lld once more", r->path,
                                  (long long)own->line, (long long)r->row[other - 1].line);
        own->next = *head;
        *head = i + 1;
    }
    return SHOAL_OK;
}

/* `longest` is what the longest completed run of the table took. */
static plan_trial trial_of(const reader *r, int64_t first, double longest)
{
    double sum = 0, most = 0;
    int64_t completed = 0;
    for (int64_t i = first; i > 0; i = r->row[i - 1].next) {
        completed += r->row[i - 1].completed;
        sum += r->row[i - 1].completed ? r->row[i - 1].seconds : 0;
        most = fmax(most, r->row[i - 1].seconds);
    }
    if (first == 0)
        return (plan_trial){.seconds = NAN};
    if (completed > 0)
        return (plan_trial){.outcome = PLAN_TRIAL_DONE, .seconds = sum / (double)completed};
    return (plan_trial){.outcome = most >= longest ? PLAN_TRIAL_TIMED_OUT : PLAN_TRIAL_FAILED, .seconds = most};
}

static int fill_cells(reader *r)
{
    plan_table *table = r->table;
    const int64_t candidates = table->space.candidates;
    int64_t *first = NULL;
    double longest = 0;
    for (int64_t i = 0; i < r->rows; i++)
        longest = r->row[i].completed ? fmax(longest, r->row[i].seconds) : longest;
    int status = base_alloc(&first, (size_t)table->workloads * (size_t)candidates, sizeof *first, "a table");
    if (status == SHOAL_OK)
        status = link_rows(r, first);
    for (int64_t w = 0; status == SHOAL_OK && w < table->workloads; w++) {
        plan_workload *workload = &table->workload[w];
        status = base_alloc(&workload->trial, (size_t)candidates, sizeof *workload->trial, "a table");
        for (int64_t c = 0; status == SHOAL_OK && c < candidates; c++) {
            workload->trial[c] = trial_of(r, first[w * candidates + c], longest);
            workload->trial[c].candidate = c;
            workload->measured += first[w * candidates + c] > 0;
        }
    }
    base_free(&first);
    return status;
}

/* The table outlives the prices, so it has the names itself. */
static int keep_names(reader *r)
{
    plan_table *table = r->table;
    int status = base_alloc(&table->machine, (size_t)table->space.candidates, sizeof *table->machine, "a table");
    for (int64_t c = 0; status == SHOAL_OK && c < table->space.candidates; c++) {
        const char *name = r->prices->machine[r->machine_of[c]].name;
        int64_t at = 0;
        while (at < table->machines && strcmp(table->machine[at], name) != 0)
            at++;
        if (at == table->machines) {
            status = base_copy_text(&table->machine[at], name);
            table->machines += status == SHOAL_OK;
        }
        if (status == SHOAL_OK)
            table->candidate[c].machine = table->machine[at];
    }
    table->space.candidate = table->candidate;
    return status;
}

int plan_table_read(plan_table **out, const char *path, const plan_prices *prices)
{
    reader r = {.path = path, .prices = prices};
    *out = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be opened", path);
    int status = base_alloc(&r.table, 1, sizeof *r.table, "a table");
    if (status == SHOAL_OK)
        status = base_copy_text(&r.table->name, path);
    if (status == SHOAL_OK)
        status = data_table_read(&r.text, path, file, "a table of runs");
    if (status == SHOAL_OK)
        status = read_header(&r);
    while (status == SHOAL_OK && data_table_next(&status, &r.text))
        status = read_row(&r);
    if (status == SHOAL_OK && r.rows == 0)
        status = shoal_fail(SHOAL_INVALID, "%s has no rows", path);
    if (status == SHOAL_OK) {
        plan_candidates_describe(&r.table->space);
        status = keep_names(&r);
    }
    if (status == SHOAL_OK)
        status = fill_cells(&r);
    if (status < 0)
        plan_table_free(&r.table);
    *out = r.table;
    data_table_release(&r.text);
    fclose(file);
    base_free(&r.row);
    base_free(&r.machine_of);
    return status;
}

void plan_table_free(plan_table **table)
{
    plan_table *old = *table;
    if (old) {
        for (int64_t w = 0; w < old->workloads; w++) {
            base_free(&old->workload[w].name);
            base_free(&old->workload[w].trial);
        }
        for (int64_t i = 0; i < old->machines; i++)
            base_free(&old->machine[i]);
        base_free(&old->workload);
        base_free(&old->machine);
        base_free(&old->candidate);
        base_free(&old->name);
    }
    base_free(table);
}
