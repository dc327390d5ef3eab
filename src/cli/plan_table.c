/* The table of a plan: as narrow as its content, so that it fits a terminal.  See plan_verb.h. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "plan/units.h"
#include "plan_verb.h"

enum { ROWS_SHOWN = 18, MACHINES_SHOWN = 20, LIST_SHOWN = 40, CELL_BYTES = 144 };

/* ---- which rows -------------------------------------------------------------------------------------------------- */

/* The best of a machine's options, one after another from `first`; *end is where the next machine's begin. */
static int64_t best_of_machine(int64_t *end, const plan_choice *choice, int64_t first)
{
    int64_t best = first;
    for (*end = first; *end < choice->options && choice->option[*end].machine == choice->option[first].machine; ++*end)
        if (plan_is_better(&choice->option[*end], &choice->option[best], choice->goal))
            best = *end;
    return best;
}

/* The best of each of the best machines. */
static void show_machines(bool *shown, const plan_choice *choice)
{
    for (int i = 0; i < MACHINES_SHOWN; i++) {
        int64_t next = -1;
        for (int64_t first = 0, end; first < choice->options; first = end) {
            int64_t best = best_of_machine(&end, choice, first);
            if (!shown[best] && choice->option[best].fits &&
                (next < 0 || plan_is_better(&choice->option[best], &choice->option[next], choice->goal)))
                next = best;
        }
        if (next < 0)
            return;
        shown[next] = true;
    }
}

/* Some numbers of workers of one machine that fit it, closer where they are small. */
static void show_spread(bool *shown, const plan_choice *choice, int64_t first, int64_t end)
{
    double next = 0;
    while (first < end - 1 && !choice->option[first].fits)
        first++;
    double most = (double)choice->option[end - 1].workers, least = (double)choice->option[first].workers;
    double step = pow(most / least, 1.0 / ROWS_SHOWN);
    for (int64_t i = first; i < end; i++)
        if ((double)choice->option[i].workers >= next) {
            shown[i] = true;
            next = (double)choice->option[i].workers * step;
        }
    shown[end - 1] = true;
}

/* Of many machines the best option of each; of the best machine several when there are few others. */
static void show_some(bool *shown, const plan *plan)
{
    enum { FEW = 8 };
    const plan_choice *choice = &plan->choice;
    int64_t numbers = plan->question.workers_count, machines = choice->options / numbers;
    int64_t first = choice->best / numbers * numbers;
    if (machines > 1)
        show_machines(shown, choice);
    if (machines <= FEW)
        show_spread(shown, choice, first, first + numbers);
}

/* All that were asked for, if these are few; otherwise some, and always the best, the fastest and the cheapest. */
static void choose_shown(bool *shown, const plan *plan, bool all)
{
    const plan_choice *choice = &plan->choice;
    if (all || plan->request->here || choice->options <= LIST_SHOWN) {
        memset(shown, true, (size_t)choice->options * sizeof *shown);
        return;
    }
    show_some(shown, plan);
    shown[choice->best] = shown[choice->fastest] = shown[choice->cheapest] = true;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

typedef struct table {
    const plan *plan;
    bool one_place;
} table;

static void cell_workers(char *out, const table *table, const plan_option *option)
{
    (void)table;
    snprintf(out, CELL_BYTES, "%lld", (long long)option->workers);
}

static void cell_options(char *out, const table *table, const plan_option *option)
{
    (void)table;
    snprintf(out, CELL_BYTES, option->alone ? "--threads %lld" : "--workers local:%lld",
             (long long)(option->alone ? option->threads : option->workers));
}

static void cell_machine(char *out, const table *table, const plan_option *option)
{
    snprintf(out, CELL_BYTES, "%s", table->one_place ? option->machine->name : option->machine->id);
}

static void cell_time(char *out, const table *table, const plan_option *option)
{
    (void)table;
    plan_format_duration(out, option->estimate.seconds);
}

/* "28 to 45 min", "50 min to 2.0 h" */
static void cell_interval(char *out, const table *table, const plan_option *option)
{
    char low[PLAN_UNITS_BYTES], high[PLAN_UNITS_BYTES];
    (void)table;
    plan_format_duration(low, option->estimate.low);
    plan_format_duration(high, option->estimate.high);
    char *unit = strchr(low, ' '), *other = strchr(high, ' ');
    if (unit && other && strcmp(unit, other) == 0)
        *unit = '\0';
    snprintf(out, CELL_BYTES, "%s to %s", low, high);
    if (!isfinite(option->estimate.seconds))
        out[0] = '\0';
}

static void cell_speedup(char *out, const table *table, const plan_option *option)
{
    (void)table;
    snprintf(out, CELL_BYTES, "%.1f", option->estimate.speedup);
}

static void cell_efficiency(char *out, const table *table, const plan_option *option)
{
    (void)table;
    snprintf(out, CELL_BYTES, "%.2f", option->estimate.efficiency);
}

static void cell_price(char *out, const table *table, const plan_option *option)
{
    (void)table;
    plan_format_money(out, option->estimate.cost);
}

static void cell_remark(char *out, const table *table, const plan_option *option)
{
    const bool usual = option->alone && option->threads == table->plan->usual,
               given = table->plan->request->threads > 0;
    const char *remark = !option->fits        ? "too little memory"
                         : !option->in_time   ? "too late"
                         : !option->in_budget ? "too expensive"
                         : !usual             ? ""
                         : given              ? "as given"
                                              : "default";
    snprintf(out, CELL_BYTES, "%s", remark);
}

typedef struct column {
    const char *heading;
    void (*cell)(char *out, const table *table, const plan_option *option); /* at most CELL_BYTES */
    bool left;                                                              /* as text is, not as numbers are */
    bool close;                                                             /* to the one before it: one space */
    bool hidden;
    int width;
} column;

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void widen_columns(column *columns, const table *table, const plan_option *option)
{
    char text[CELL_BYTES];
    for (column *column = columns; column->heading; column++) {
        if (column->hidden)
            continue;
        column->cell(text, table, option);
        column->width = (int)fmax(column->width, (double)strlen(text));
    }
}

/* One row; that of headings without an option. */
static void print_row(FILE *stream, const column *columns, const table *table, const plan_option *option)
{
    char text[CELL_BYTES];
    int spaces = 0; /* that only count if something follows */
    fputs(option && option == table->plan->best ? "*" : " ", stream);
    for (const column *column = columns; column->heading; column++) {
        if (column->hidden)
            continue;
        snprintf(text, sizeof text, "%s", column->heading);
        if (option)
            column->cell(text, table, option);
        int room = column->width - (int)strlen(text);
        spaces += (column == columns ? column->left : column->close ? 1 : 2) + (column->left ? 0 : room);
        if (text[0]) {
            fprintf(stream, "%*s", spaces, "");
            cli_put_text(stream, text);
            spaces = column->left ? room : 0;
        }
    }
    fputc('\n', stream);
}

/* What is not in the table. */
static void print_rest(FILE *stream, const plan *plan, const bool *shown)
{
    const plan_choice *choice = &plan->choice;
    int64_t hidden = 0, big = 0;
    for (int64_t i = 0; i < choice->options; i++) {
        hidden += !shown[i];
        big += !shown[i] && !choice->option[i].fits;
    }
    if (hidden > 0)
        fprintf(stream, "  and %lld more (--all, --json)", (long long)hidden);
    if (big > 0)
        fprintf(stream, ", %lld of them with too little memory", (long long)big);
    if (hidden > 0)
        fputc('\n', stream);
}

int cli_plan_print_table(FILE *stream, const plan *plan, bool all)
{
    const plan_choice *choice = &plan->choice;
    const table table = {plan, plan_is_one_place(choice)};
    const bool here = plan->request->here;
    bool *shown = NULL;
    column columns[] = {
        {.heading = here ? "options" : "workers", .cell = here ? cell_options : cell_workers, .left = here},
        {.heading = "machine", .cell = cell_machine, .left = true, .hidden = !plan->question.machines},
        {.heading = "time", .cell = cell_time},
        {.heading = "90% of runs", .cell = cell_interval, .hidden = plan->question.paper != NULL},
        {.heading = "speed-up", .cell = cell_speedup, .close = true},
        {.heading = "efficiency", .cell = cell_efficiency, .close = true},
        {.heading = "price", .cell = cell_price, .close = true, .hidden = !plan->priced},
        {.heading = "", .cell = cell_remark, .left = true},
        {0},
    };
    int status = base_alloc(&shown, (size_t)choice->options, sizeof *shown, "the rows of a table");
    if (status < 0)
        return status;
    choose_shown(shown, plan, all);
    for (column *column = columns; column->heading; column++)
        column->width = (int)strlen(column->heading);
    for (int64_t i = 0; i < choice->options; i++)
        if (shown[i])
            widen_columns(columns, &table, &choice->option[i]);
    print_row(stream, columns, &table, NULL);
    for (int64_t i = 0; i < choice->options; i++)
        if (shown[i])
            print_row(stream, columns, &table, &choice->option[i]);
    print_rest(stream, plan, shown);
    base_free(&shown);
    return SHOAL_OK;
}
