/* shoal sweep show, best, table, export, check and list: what is known of sweeps. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "sweep_print.h"
#include "sweep_verb.h"

/* ---- the place of a sweep ---------------------------------------------------------------------------------------- */

static int check_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t length = strlen(name);
    if (length == 0 || length > 63 || strspn(name, letters) != length || name[0] == '.' || name[length - 1] == '.')
        return shoal_fail(SHOAL_USAGE,
                          "'%.80s' is no name of a sweep: up to 63 letters, digits, '-', '_' and '.', no '.' first or "
                          "last; --name gives another",
                          name);
    return SHOAL_OK;
}

int cli_sweep_place_open(cli_sweep_place *out, const run_jobs_settings *settings, const char *name,
                         run_jobs_access access)
{
    *out = (cli_sweep_place){0};
    int status = check_name(name);
    if (status == SHOAL_OK)
        status = run_jobs_open(&out->jobs, settings, access);
    out->place = (sweep_place){.store = out->jobs.store, .name = name, .patience = out->jobs.patience};
    return status;
}

void cli_sweep_place_close(cli_sweep_place *place)
{
    run_jobs_close(&place->jobs);
}

/* ---- one sweep, read --------------------------------------------------------------------------------------------- */

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    bool json;
    int64_t top;
} settings;

int cli_sweep_open(cli_sweep_known *out, const run_jobs_settings *from, const char *name, bool check)
{
    *out = (cli_sweep_known){0};
    int status = cli_sweep_place_open(&out->at, from, name, RUN_JOBS_READ);
    if (status == SHOAL_OK)
        status = sweep_place_spec(&out->spec, &out->at.place);
    if (status < 0)
        return status;
    sweep_log_init(&out->log, &out->spec->rules, out->spec->maximise, out->spec->ahead);
    out->has_log = true;
    return sweep_place_pull(&out->log, &out->at.place, check);
}

void cli_sweep_close(cli_sweep_known *s)
{
    if (s->has_log)
        sweep_log_release(&s->log);
    sweep_spec_free(&s->spec);
    cli_sweep_place_close(&s->at);
}

static const shoal_option json_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL, .help = "print one JSON object"},
    {0},
};
static const shoal_option table_rows[] = {
    {"top", 0, SHOAL_OPTION_COUNT, offsetof(settings, top), "N", .help = "only the best N trials, best first",
     .least = 1},
    {0},
};
static const shoal_option *const json_options = json_rows, *const table_options = table_rows;
static const base_option_group show_groups[] = {
    {"Printing", &json_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group table_groups[] = {
    {"Printing", &table_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group plain_groups[] = {
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- show and best ----------------------------------------------------------------------------------------------- */

static int run_show(void *from_main, const char *const *word, int words)
{
    const settings *from = from_main;
    cli_sweep_known s;
    (void)words;
    int status = cli_sweep_open(&s, &from->jobs, word[0], false);
    if (status == SHOAL_OK && from->json)
        status = cli_print_json(cli_sweep_json(s.spec, &s.log, word[0]));
    else if (status == SHOAL_OK)
        cli_sweep_print_end(s.spec, &s.log, &s.at.place);
    cli_sweep_close(&s);
    return status;
}

static int run_best(void *from_main, const char *const *word, int words)
{
    const settings *from = from_main;
    cli_sweep_known s;
    (void)words;
    int status = cli_sweep_open(&s, &from->jobs, word[0], false);
    if (status == SHOAL_OK && s.log.course.best < 0)
        status = shoal_fail(SHOAL_INVALID, "no trial of sweep '%s' has reported \"%s\"", word[0], s.spec->objective);
    if (status == SHOAL_OK && from->json) {
        status = cli_print_json(cli_sweep_trial_json(&s.log, s.log.course.best));
    } else if (status == SHOAL_OK) {
        const sweep_point *point = &s.log.course.trial[s.log.course.best].point;
        for (int i = 0; i < s.spec->space->parameters; i++) {
            char own[SWEEP_TEXT_BYTES];
            const char *text = sweep_text(own, &s.spec->space->parameter[i], point->value[i]);
            if (isnan(point->value[i]))
                continue;
            printf("%s=", s.spec->space->parameter[i].name);
            cli_put_text(stdout, text);
            putchar('\n');
        }
    }
    cli_sweep_close(&s);
    return status;
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

static int run_table(void *from_main, const char *const *word, int words)
{
    const settings *from = from_main;
    int64_t *order = NULL, count = 0;
    cli_sweep_known s;
    (void)words;
    int status = cli_sweep_open(&s, &from->jobs, word[0], false);
    const sweep_course *course = &s.log.course;
    if (status == SHOAL_OK)
        status = base_alloc(&order, (size_t)course->trials, sizeof *order, "a table");
    if (status == SHOAL_OK) {
        const sweep_question question = {.trial = course->trial, .trials = course->trials};
        count = from->top ? sweep_rank_trials(order, &question) : course->trials;
        cli_sweep_print_head(s.spec);
        for (int64_t i = 0; i < count && (!from->top || i < from->top); i++)
            cli_sweep_print_trial(&s.log, from->top ? order[i] : i);
    }
    base_free(&order);
    cli_sweep_close(&s);
    return status;
}

/* ---- export ------------------------------------------------------------------------------------------------------ */

/* A cell as RFC 4180 has it. */
static void put_cell(FILE *stream, const char *text)
{
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, stream);
        return;
    }
    putc('"', stream);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', stream);
        putc(*text, stream);
    }
    putc('"', stream);
}

static void put_csv(FILE *stream, const cli_sweep_known *s)
{
    const sweep_space *space = s->spec->space;
    fputs("trial,state,steps,value", stream);
    for (int i = 0; i < space->parameters; i++)
        fprintf(stream, ",%s", space->parameter[i].name);
    putc('\n', stream);
    for (int64_t t = 0; t < s->log.course.trials; t++) {
        const sweep_trial *trial = &s->log.course.trial[t];
        fprintf(stream, "%" PRId64 ",%s,%" PRId64 ",", t, cli_sweep_state(trial), trial->step);
        if (!isnan(trial->value))
            fprintf(stream, "%.17g", cli_sweep_value(&s->log, t));
        for (int i = 0; i < space->parameters; i++) {
            char own[SWEEP_TEXT_BYTES];
            putc(',', stream);
            put_cell(stream, sweep_text(own, &space->parameter[i], trial->point.value[i]));
        }
        putc('\n', stream);
    }
}

static int put_json(FILE *stream, const cli_sweep_known *s, const char *name)
{
    json_t *object = cli_sweep_json(s->spec, &s->log, name);
    if (!object)
        return shoal_fail(SHOAL_MEMORY, "out of memory for a table of trials");
    json_dumpf(object, stream, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    putc('\n', stream);
    json_decref(object);
    return SHOAL_OK;
}

static int run_export(void *from_main, const char *const *word, int words)
{
    const bool csv = words < 2 || base_text_ends(word[1], ".csv");
    base_output *output = NULL;
    cli_sweep_known s;
    if (!csv && !base_text_ends(word[1], ".json"))
        return shoal_fail(SHOAL_USAGE, "%s: must end in .csv or .json", word[1]);
    int status = cli_sweep_open(&s, &((const settings *)from_main)->jobs, word[0], false);
    if (status == SHOAL_OK)
        status = base_output_open(&output, words < 2 ? "-" : word[1]);
    if (status == SHOAL_OK && csv)
        put_csv(base_output_stream(output), &s);
    else if (status == SHOAL_OK)
        status = put_json(base_output_stream(output), &s, word[0]);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    cli_sweep_close(&s);
    return status;
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

/* Whether the log has of each order what its result says, and nothing else. */
static int check_results(int64_t *results, const cli_sweep_known *s)
{
    const sweep_course *course = &s->log.course;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < course->orders && status == SHOAL_OK; i++) {
        const sweep_order *order = &course->order[i];
        sweep_ended ended;
        if (!order->ended)
            continue;
        status = sweep_place_get_result(&ended, &s->at.place, order, i);
        base_free(&ended.curve);
        if (status == SHOAL_ABSENT)
            return shoal_fail(SHOAL_BROKEN, "the log has a result of order %" PRId64 ", and the store has none", i);
        const double logged = course->trial[order->trial].rung[order->rung];
        const bool same = ended.result.failed ? isinf(logged) : s->log.sign * ended.result.value == logged;
        if (status == SHOAL_OK && !same)
            return shoal_fail(SHOAL_BROKEN, "the log has another value for order %" PRId64 " than its result", i);
        ++*results;
    }
    return status;
}

static int run_check(void *from_main, const char *const *word, int words)
{
    int64_t results = 0;
    cli_sweep_known s;
    (void)words;
    int status = cli_sweep_open(&s, &((const settings *)from_main)->jobs, word[0], true);
    if (status == SHOAL_OK)
        status = check_results(&results, &s);
    if (status == SHOAL_OK)
        printf("%" PRId64 " entries of the log: each decision follows from what was known\n"
               "%" PRId64 " results: the store has each as the log does\n",
               s.log.entries, results);
    cli_sweep_close(&s);
    return status;
}

/* ---- list -------------------------------------------------------------------------------------------------------- */

static int run_list(void *from_main, const char *const *word, int words)
{
    static const char prefix[] = "sweeps/", last[] = "/spec";
    const settings *from = from_main;
    run_jobs jobs = {0};
    shoal_listing page = {0};
    (void)word;
    (void)words;
    int status = run_jobs_open(&jobs, &from->jobs, RUN_JOBS_READ);
    do {
        status = status < 0 ? status : shoal_store_list(jobs.store, prefix, NULL, &page, run_jobs_deadline(&jobs));
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            const char *name = page.entries[i].key + sizeof prefix - 1;
            const size_t length = strlen(name);
            if (length > sizeof last - 1 && strcmp(name + length - (sizeof last - 1), last) == 0) {
                cli_put_text_n(stdout, name, length - (sizeof last - 1));
                putchar('\n');
            }
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    run_jobs_close(&jobs);
    return status;
}

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

static const char *const show_description[] = {"Shows the best trial of a sweep and how many trials there are.", NULL};
static const learn_example show_examples[] = {{"shoal sweep show digits", "how the sweep 'digits' stands"},
                                              {NULL, NULL}};
const cli_verb cli_sweep_show = {.name = "sweep show",
                                 .summary = "show how a sweep stands",
                                 .word = {"NAME"},
                                 .words_least = 1,
                                 .synopsis = "[options]",
                                 .description = show_description,
                                 .examples = show_examples,
                                 .options = show_groups,
                                 .settings_size = sizeof(settings),
                                 .run = run_show};

static const char *const best_description[] = {"Prints the parameters of the best trial, NAME=VALUE on each line.",
                                               NULL};
static const learn_example best_examples[] = {{"shoal sweep best digits", "what the best trial was run with"},
                                              {NULL, NULL}};
const cli_verb cli_sweep_best = {.name = "sweep best",
                                 .summary = "print the parameters of the best trial",
                                 .word = {"NAME"},
                                 .words_least = 1,
                                 .synopsis = "[options]",
                                 .description = best_description,
                                 .examples = best_examples,
                                 .options = show_groups,
                                 .settings_size = sizeof(settings),
                                 .run = run_best};

static const char *const table_description[] = {"Prints every trial with its state, its best value and its "
                                                "parameters; the best has a star.",
                                                NULL};
static const learn_example table_examples[] = {{"shoal sweep table digits --top 10", "the ten best trials"},
                                               {NULL, NULL}};
const cli_verb cli_sweep_table = {.name = "sweep table",
                                  .summary = "print the trials of a sweep",
                                  .word = {"NAME"},
                                  .words_least = 1,
                                  .synopsis = "[options]",
                                  .description = table_description,
                                  .examples = table_examples,
                                  .options = table_groups,
                                  .settings_size = sizeof(settings),
                                  .run = run_table};

static const char *const export_description[] = {
    "Writes the trials of a sweep to a file, as CSV or JSON by its ending, or as CSV to standard output.", NULL};
static const learn_example export_examples[] = {{"shoal sweep export digits trials.csv", "all trials, one a row"},
                                                {NULL, NULL}};
const cli_verb cli_sweep_export = {.name = "sweep export",
                                   .summary = "write the trials of a sweep as CSV or JSON",
                                   .word = {"NAME", "FILE"},
                                   .words_least = 1,
                                   .synopsis = "[options]",
                                   .description = export_description,
                                   .examples = export_examples,
                                   .options = plain_groups,
                                   .settings_size = sizeof(settings),
                                   .run = run_export};

static const char *const check_description[] = {
    "Replays the log of a sweep: each decision must be the one that follows from what was known, and each result the "
    "one that the store has.",
    NULL};
static const learn_example check_examples[] = {{"shoal sweep check digits", "whether the log holds"}, {NULL, NULL}};
const cli_verb cli_sweep_check = {.name = "sweep check",
                                  .summary = "replay the decisions of a sweep",
                                  .word = {"NAME"},
                                  .words_least = 1,
                                  .synopsis = "[options]",
                                  .description = check_description,
                                  .examples = check_examples,
                                  .options = plain_groups,
                                  .settings_size = sizeof(settings),
                                  .run = run_check};

static const char *const list_description[] = {"Lists the sweeps of a store.", NULL};
static const learn_example list_examples[] = {{"shoal sweep list --store az://acct/box", "all sweeps of a store"},
                                              {NULL, NULL}};
const cli_verb cli_sweep_list = {.name = "sweep list",
                                 .summary = "list the sweeps of a store",
                                 .synopsis = "[options]",
                                 .description = list_description,
                                 .examples = list_examples,
                                 .options = plain_groups,
                                 .settings_size = sizeof(settings),
                                 .run = run_list};
