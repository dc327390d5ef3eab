/* shoal plan search: the best configuration for a command, by trying a few of them; and --replay, how good that is on
 * measured tables.
 *
 * What was tried is in the journal before anything else is tried, and what to try next follows from that alone: so a
 * search goes on after any end of this program as if nothing had happened. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "plan_search_command.h"
#include "plan_search_journal.h"
#include "plan_search_print.h"
#include "plan_search_results.h"
#include "plan_search_run.h"
#include "plan_units.h"

typedef struct settings {
    cli_common common;
    const char *space, *run, *from, *journal, *prices, *replay;
    const char *deadline, *budget, *timeout;
    int objective, method;
    bool spot, json, quiet;
    int64_t trials, least, seed, seeds;
    double improvement;
} settings;

#define AT(field) offsetof(settings, field)

static const char *const objectives[] = {"auto", "time", "cost", "cost*time", NULL};
static const char *const methods[] = {"best", "cherrypick", "random", NULL};
enum { OBJECTIVE_AUTO = 0 };

static const shoal_option search_rows[] = {
    {"space", 0, SHOAL_OPTION_TEXT, AT(space), "SPACE.json",
     .help = "what there is to choose from: machines, how many of them, and other parameters"},
    {"run", 0, SHOAL_OPTION_TEXT, AT(run), "COMMAND",
     .help = "what to run, by /bin/sh; {machine}, {count} and other parameters stand for their values"},
    {"timeout", 0, SHOAL_OPTION_TEXT, AT(timeout), "TIME", .help = "ends a command that takes longer: 30m, 2h"},
    {"from", 0, SHOAL_OPTION_TEXT, AT(from), "RESULTS.csv",
     .help = "trials that were made elsewhere: machine,count,seconds and, if known, cost and outcome"},
    {"journal", 0, SHOAL_OPTION_TEXT, AT(journal), "FILE",
     .help = "where trials are kept; beside the space, as SPACE.trials.jsonl, when left out"},
    {"prices", 0, SHOAL_OPTION_TEXT, AT(prices), "PRICES.csv",
     .help = "price table to find machines in; this program has a small one"},
    {"spot", 0, SHOAL_OPTION_FLAG, AT(spot), NULL, .help = "count spot prices"},
    {0},
};
static const shoal_option wish_rows[] = {
    {"objective", 0, SHOAL_OPTION_CHOICE, AT(objective), "WHAT",
     .help = "what is to be least: time, cost or cost*time of a run; auto: cost where there is a deadline or "
             "--replay, otherwise time",
     .fallback = "auto", .choices = objectives},
    {"deadline", 0, SHOAL_OPTION_TEXT, AT(deadline), "TIME", .help = "what a run may take: 30m, 2h, 1d"},
    {"budget", 0, SHOAL_OPTION_TEXT, AT(budget), "MONEY", .help = "what a run may cost: 5usd"},
    {"least", 0, SHOAL_OPTION_COUNT, AT(least), "N", .help = "trials before it may stop by itself", .fallback = "6",
     .least = 1, .most = 1e6},
    {"trials", 0, SHOAL_OPTION_COUNT, AT(trials), "N",
     .help = "trials at most, with those that are told or taken over; with --replay runs of the searches that do not "
             "stop by themselves, 10 when left out",
     .least = 1, .most = 1e6},
    {"improvement", 0, SHOAL_OPTION_REAL, AT(improvement), "SHARE",
     .help = "stops when less than this is expected to be gained; 0: never", .fallback = "0.1", .least = 0, .most = 1},
    {"seed", 0, SHOAL_OPTION_COUNT, AT(seed), "N", .help = "of the quasi-random starts", .fallback = "1", .least = 0,
     .most = 1e15},
    {"method", 0, SHOAL_OPTION_CHOICE, AT(method), "NAME",
     .help = "how the next one is chosen: best, cherrypick as published, or random", .fallback = "best",
     .choices = methods},
    {0},
};
static const shoal_option output_rows[] = {
    {"replay", 0, SHOAL_OPTION_TEXT, AT(replay), "FILE.csv",
     .help = "instead of searching, evaluate the search on a measured table: nodes,vm,workload,...,elapsed_time; "
             "--prices must name the machines' prices"},
    {"seeds", 0, SHOAL_OPTION_COUNT, AT(seeds), "N", .help = "searches of each workload of --replay", .fallback = "50",
     .least = 1, .most = 10000},
    {"json", 0, SHOAL_OPTION_FLAG, AT(json), NULL, .help = "print one JSON object at the end instead of the table"},
    {"quiet", 'q', SHOAL_OPTION_FLAG, AT(quiet), NULL, .help = "no table and no notes, only what came of it"},
    {0},
};
static const shoal_option *const search_options = search_rows, *const wish_options = wish_rows,
                                 *const output_options = output_rows;
static const base_option_group groups[] = {
    {"Search", &search_options, 0},
    {"What is best", &wish_options, 0},
    {"Evaluating and output", &output_options, 0},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static int read_options(plan_search_options *out, const settings *from)
{
    bool by_cost = from->deadline || from->replay;
    int status = SHOAL_OK;
    *out = (plan_search_options){.seed = (uint64_t)from->seed,
                                 .least = from->least,
                                 .most = from->replay ? 0 : from->trials,
                                 .improvement = from->improvement,
                                 .method = from->method};
    out->objective =
        from->objective == OBJECTIVE_AUTO ? (by_cost ? PLAN_COST : PLAN_TIME) : (plan_objective)(from->objective - 1);
    if (from->deadline)
        status = cli_parse_duration(&out->deadline, "--deadline", from->deadline);
    if (status == SHOAL_OK && from->budget)
        status = cli_parse_money(&out->budget, "--budget", from->budget);
    return status;
}

static int check_settings(const settings *from)
{
    if (from->replay && (from->space || from->run || from->from || from->journal))
        return shoal_fail(SHOAL_USAGE,
                          "--replay evaluates the search and goes without --space, --run, --from and --journal");
    if (from->replay && from->spot)
        return shoal_fail(SHOAL_USAGE, "--replay counts the ordinary prices of its table: leave --spot away");
    if (from->replay && !from->prices)
        return shoal_fail(SHOAL_USAGE, "--replay needs --prices: a table with the prices of its machines");
    if (from->replay)
        return SHOAL_OK;
    if (!from->space)
        return shoal_fail(SHOAL_USAGE, "plan search needs --space SPACE.json, or --replay FILE.csv");
    if (!from->run && !from->from)
        return shoal_fail(
            SHOAL_USAGE,
            "plan search needs --run COMMAND to try configurations, or --from RESULTS.csv to say what to try next");
    if (!from->run && (from->journal || from->timeout))
        return shoal_fail(SHOAL_USAGE, "%s needs --run", from->journal ? "--journal" : "--timeout");
    return SHOAL_OK;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

typedef struct work {
    const settings *settings;
    cli_search_state state;
    cli_search_journal *journal;
    char *journal_path, *folder; /* of the commands' output */
    double timeout;
    cli_progress progress;
    char running[CLI_SEARCH_LABEL_BYTES + 64]; /* what the progress line says */
    bool table;                                /* is shown as it goes */
} work;

static void note(const work *self, const char *text)
{
    if (!self->settings->quiet)
        fprintf(stderr, "shoal: %s\n", text);
}

/* Lets the search and the state have a trial, and shows it. */
static int tell(work *self, const cli_search_trial *trial)
{
    cli_search_state *state = &self->state;
    plan_trial told = {.candidate = trial->candidate,
                       .outcome = trial->outcome,
                       .seconds = trial->seconds,
                       .dollars = isnan(trial->told_dollars) ? 0 : trial->told_dollars};
    int status =
        base_grow(&state->trial, (size_t)state->trials, (size_t)state->trials + 1, sizeof *state->trial, "trials");
    if (status == SHOAL_OK)
        status = plan_search_tell(state->search, &told);
    if (status < 0)
        return status;
    state->trial[state->trials++] = *trial;
    if (self->table)
        cli_search_print_trial(state, state->trials - 1);
    return SHOAL_OK;
}

static bool is_told(const work *self, int64_t candidate)
{
    for (int64_t i = 0; i < self->state.trials; i++)
        if (self->state.trial[i].candidate == candidate)
            return true;
    return false;
}

static int tell_results(work *self)
{
    cli_search_trial *trial = NULL;
    int64_t count = 0;
    char ignored[256], text[512];
    int status = cli_search_results_read(&trial, &count, ignored, self->settings->from, self->state.space);
    if (status == SHOAL_OK && ignored[0]) {
        snprintf(text, sizeof text, "%s: not looked at: %s", self->settings->from, ignored);
        note(self, text);
    }
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        status = tell(self, &trial[i]);
    base_free(&trial);
    return status;
}

/* What both --from and the journal have is taken from the former. */
static int tell_journal(work *self)
{
    char text[1024];
    int64_t taken = 0;
    int status = SHOAL_OK;
    if (self->journal->cut) {
        snprintf(text, sizeof text, "%s: the last line was cut off and is dropped", self->journal->path);
        note(self, text);
    }
    for (int64_t i = 0; i < self->journal->trials && status == SHOAL_OK; i++) {
        if (is_told(self, self->journal->trial[i].candidate))
            continue;
        status = tell(self, &self->journal->trial[i]);
        taken++;
    }
    if (taken > 0) {
        snprintf(text, sizeof text, "took over %" PRId64 " trial%s from %s", taken, taken == 1 ? "" : "s",
                 self->journal->path);
        note(self, text);
    }
    return status;
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

static void show_waiting(void *context, double seconds)
{
    work *self = context;
    char time[CLI_UNITS_BYTES], line[sizeof self->running + CLI_UNITS_BYTES + 8];
    cli_format_duration(time, floor(seconds));
    snprintf(line, sizeof line, "%s, %s", self->running, time);
    cli_progress_say(&self->progress, line);
}

static int make_folder(const char *path)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't make the folder for what the commands print", path);
    return SHOAL_OK;
}

static void show_failure(const work *self, const cli_search_trial *trial, const char *stdout_path,
                         const char *stderr_path)
{
    struct stat info;
    if (trial->outcome != PLAN_TRIAL_FAILED || self->settings->quiet)
        return;
    bool in_stderr = stat(stderr_path, &info) == 0 && info.st_size > 0;
    cli_search_print_tail(stderr, in_stderr ? stderr_path : stdout_path, "       | ", 3);
}

static int try_one(work *self, int64_t candidate, const char *why)
{
    char *command = NULL, *stdout_path = NULL, *stderr_path = NULL, label[CLI_SEARCH_LABEL_BYTES];
    cli_search_trial trial = {.candidate = candidate, .told_dollars = NAN};
    int64_t number = cli_search_journal_next(self->journal);
    snprintf(trial.why, sizeof trial.why, "%s", why);
    cli_search_label(label, self->state.space, candidate);
    snprintf(self->running, sizeof self->running, "trial %" PRId64 ": %s", self->state.trials + 1, label);
    int status = cli_search_command_fill(&command, self->state.space, self->settings->run, candidate);
    if (status == SHOAL_OK)
        status = base_format(&stdout_path, "%s/%" PRId64 ".stdout.txt", self->folder, number);
    if (status == SHOAL_OK)
        status = base_format(&stderr_path, "%s/%" PRId64 ".stderr.txt", self->folder, number);
    if (status == SHOAL_OK)
        status = make_folder(self->folder);
    if (status == SHOAL_OK)
        status = cli_search_run_trial(&trial, &(cli_search_run){.command = command,
                                                                .stdout_path = stdout_path,
                                                                .stderr_path = stderr_path,
                                                                .timeout = self->timeout,
                                                                .waiting = show_waiting,
                                                                .context = self});
    cli_progress_clear(&self->progress);
    if (status == SHOAL_OK)
        status = cli_search_journal_add(self->journal, self->state.space, &trial);
    if (status == SHOAL_OK)
        status = tell(self, &trial);
    if (status == SHOAL_OK)
        show_failure(self, &trial, stdout_path, stderr_path);
    base_free(&stderr_path);
    base_free(&stdout_path);
    base_free(&command);
    return status;
}

/* Tries until the search is over, or, without a command, says what it would try.  SHOAL_STOPPED after a signal. */
static int search(work *self)
{
    static const char prefix[] = "stops: ";
    cli_search_state *state = &self->state;
    for (;;) {
        const char *why = "";
        int64_t next = -1;
        int status = plan_search_next(&next, &why, state->search);
        if (status < 0)
            return status;
        if (next < 0 || !self->settings->run) {
            bool prefixed = strncmp(why, prefix, sizeof prefix - 1) == 0;
            snprintf(state->stopped, sizeof state->stopped, "%s", why + (prefixed ? sizeof prefix - 1 : 0));
            state->next = next;
            return SHOAL_OK;
        }
        if (cli_signals_stopped())
            return shoal_fail(SHOAL_STOPPED, "stopped");
        status = try_one(self, next, why);
        if (status < 0)
            return status;
    }
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static int open_all(work *self)
{
    const settings *from = self->settings;
    cli_search_state *state = &self->state;
    state->next = -1;
    int status = read_options(&state->options, from);
    if (status == SHOAL_OK && from->timeout)
        status = cli_parse_duration(&self->timeout, "--timeout", from->timeout);
    state->objective = objectives[state->options.objective + 1];
    cli_search_terms terms = {.prices = from->prices,
                              .spot = from->spot,
                              .need_prices = state->options.objective != PLAN_TIME || state->options.budget > 0};
    if (status == SHOAL_OK)
        status = cli_search_space_read(&state->space, from->space, &terms);
    if (status == SHOAL_OK && from->run)
        status = cli_search_command_check(state->space, from->run);
    if (status == SHOAL_OK)
        status = plan_search_new(&state->search, &state->space->plan, &state->options);
    if (status == SHOAL_OK && from->run)
        status = from->journal ? base_copy_text(&self->journal_path, from->journal)
                               : cli_search_journal_path(&self->journal_path, from->space);
    if (status == SHOAL_OK && from->run)
        status = cli_search_output_folder(&self->folder, self->journal_path);
    if (status == SHOAL_OK && from->run)
        status = cli_search_journal_open(
            &self->journal, self->journal_path,
            &(cli_search_purpose){.space = state->space, .objective = state->objective, .command = from->run});
    state->journal = self->journal_path;
    return status;
}

static int tell_all(work *self)
{
    char text[256];
    if (self->state.space->alike > 0) {
        snprintf(text, sizeof text,
                 "%s: %" PRId64 " machines have the numbers of another: the model can't tell them apart",
                 self->state.space->path, self->state.space->alike);
        note(self, text);
    }
    if (self->table)
        cli_search_print_head(&self->state);
    int status = self->settings->from ? tell_results(self) : SHOAL_OK;
    return status == SHOAL_OK && self->journal ? tell_journal(self) : status;
}

static int say_end(work *self)
{
    int status = SHOAL_OK;
    if (self->settings->json)
        status = cli_search_print_json(&self->state);
    else
        cli_search_print_end(&self->state);
    return status == SHOAL_OK && self->state.next < 0 ? cli_search_check_best(&self->state) : status;
}

/* All that is done is in the journal; what was running is not. */
static int say_stopped(work *self)
{
    snprintf(self->state.stopped, sizeof self->state.stopped, "a signal came");
    if (self->settings->json)
        cli_search_print_json(&self->state);
    fprintf(stderr, "shoal: stopped; %" PRId64 " trial%s kept in %s, and the same command goes on from there\n",
            self->journal->trials, self->journal->trials == 1 ? " is" : "s are", self->journal->path);
    return CLI_INTERRUPTED;
}

static int run_search(const settings *from)
{
    work self = {.settings = from, .table = !from->json && !from->quiet};
    cli_progress_start(&self.progress, from->quiet);
    int status = open_all(&self);
    if (status == SHOAL_OK)
        status = tell_all(&self);
    if (status == SHOAL_OK) {
        cli_signals_allow_stop(from->run != NULL);
        status = search(&self);
        cli_signals_allow_stop(false);
        status = status == SHOAL_STOPPED ? say_stopped(&self) : status == SHOAL_OK ? say_end(&self) : status;
    }
    base_free(&self.folder);
    base_free(&self.journal_path);
    base_free(&self.state.trial);
    cli_search_journal_close(&self.journal);
    plan_search_free(&self.state.search);
    cli_search_space_free(&self.state.space);
    return status;
}

static int run_replay(const settings *from)
{
    plan_prices *prices = NULL;
    plan_table *table = NULL;
    plan_replay *replay = NULL;
    plan_replay_options options = {.seeds = from->seeds, .fixed = from->trials ? from->trials : 10};
    int status = read_options(&options.search, from);
    if (status == SHOAL_OK)
        status = plan_prices_read(&prices, from->prices);
    if (status == SHOAL_OK)
        status = plan_table_read(&table, from->replay, prices);
    if (status == SHOAL_OK)
        status = plan_replay_run(&replay, table, &options);
    if (status == SHOAL_OK && from->json)
        status = cli_search_print_replay_json(replay, table, &options);
    else if (status == SHOAL_OK)
        cli_search_print_replay(replay, table, &options);
    plan_replay_free(&replay);
    plan_table_free(&table);
    plan_prices_free(&prices);
    return status;
}

static int run(void *from_main, const char *const *word, int words)
{
    const settings *from = from_main;
    (void)word;
    (void)words;
    int status = check_settings(from);
    if (status < 0)
        return status;
    return from->replay ? run_replay(from) : run_search(from);
}

static const char *const description[] = {
    "Finds the configuration with the least time or cost for a command by trying a few of them. Each trial runs the "
    "command with values filled in for {machine}, {count} and whatever else the space names; a model of all trials so "
    "far says which one to try next, and when more would gain little.",
    "A trial takes as long as its command runs. A command can tell better: if its last lines on standard output are "
    "seconds=NUMBER or cost=NUMBER, these count. One that fails or takes longer than --timeout is a trial, too, from "
    "which the search learns.",
    "Every trial is in the journal before the next one starts. The same command again goes on from there, whatever "
    "ended the last one. What commands print is beside the journal, in a folder.",
    "With --from and without --run it only says what to try next. With --replay it tells how well such searches do on "
    "a table of measured runs.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal plan search --space space.json --run './job {machine} {count}' --objective cost --deadline 2h",
     "the cheapest that takes two hours at most"},
    {"shoal plan search --space space.json --from results.csv", "what to try next, after what is in a table"},
    {"shoal plan search --replay scout_multi.csv --prices examples/prices-2018.csv",
     "how good the answers are, on measured runs"},
    {NULL, NULL},
};
const cli_verb cli_plan_search = {
    .name = "plan search",
    .summary = "find the best machines for a command by trying a few",
    .synopsis = "--space SPACE.json --run COMMAND [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run,
};
