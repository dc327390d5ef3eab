/* shoal plan search: the best configuration for a command, by trying a few of them (plan/search/search_session.h). */
#include "cli.h"

#include <inttypes.h>
#include <math.h>

#include "plan/search/search_summary.h"
#include "plan_search_print.h"
#include "plan/units.h"

typedef struct settings {
    cli_common common;
    const char *space, *run, *from, *journal, *prices;
    const char *deadline, *budget, *timeout;
    int objective;
    bool spot, json, quiet;
    int64_t trials, least, seed;
    double improvement;
} settings;

#define AT(field) offsetof(settings, field)

static const char *const objectives[] = {"auto", "time", "cost", "cost*time", NULL};
enum { OBJECTIVE_AUTO = 0 };

static const shoal_option search_rows[] = {
    {"space", 0, SHOAL_OPTION_TEXT, AT(space), "SPACE.json",
     .help = "the configurations: machines, how many of them, and other parameters"},
    {"run", 0, SHOAL_OPTION_TEXT, AT(run), "COMMAND",
     .help = "command to run, by /bin/sh; {machine}, {count} and other parameters are replaced by their values"},
    {"timeout", 0, SHOAL_OPTION_TEXT, AT(timeout), "TIME", .help = "stop a command that takes longer: 30m, 2h"},
    {"from", 0, SHOAL_OPTION_TEXT, AT(from), "RESULTS.csv",
     .help = "trials made elsewhere: machine,count,seconds and, if known, cost and outcome"},
    {"journal", 0, SHOAL_OPTION_TEXT, AT(journal), "FILE",
     .help = "file that keeps the trials (default: SPACE.trials.jsonl, next to the space)"},
    {"prices", 0, SHOAL_OPTION_TEXT, AT(prices), "PRICES.csv",
     .help = "price table to find machines in (default: a small one in this program)"},
    {"spot", 0, SHOAL_OPTION_FLAG, AT(spot), NULL, .help = "use spot prices"},
    {0},
};
static const shoal_option goal_rows[] = {
    {"objective", 0, SHOAL_OPTION_CHOICE, AT(objective), "WHAT",
     .help = "what to minimise: time, cost or cost*time of a run (auto: cost with a deadline, otherwise time)",
     .fallback = "auto", .choices = objectives},
    {"deadline", 0, SHOAL_OPTION_TEXT, AT(deadline), "TIME", .help = "a run must take no longer: 30m, 2h, 1d"},
    {"budget", 0, SHOAL_OPTION_TEXT, AT(budget), "MONEY", .help = "a run must cost no more: 5usd"},
    {"least", 0, SHOAL_OPTION_COUNT, AT(least), "N", .help = "make at least N trials", .fallback = "6", .least = 1,
     .most = 1e6},
    {"trials", 0, SHOAL_OPTION_COUNT, AT(trials), "N",
     .help = "make at most N trials, including those in --from and in the journal", .least = 1, .most = 1e6},
    {"improvement", 0, SHOAL_OPTION_REAL, AT(improvement), "SHARE",
     .help = "stop when the expected gain is less than this share (0: never)", .fallback = "0.1", .least = 0,
     .most = 1},
    {"seed", 0, SHOAL_OPTION_COUNT, AT(seed), "N", .help = "seed of the quasi-random first trials", .fallback = "1",
     .least = 0, .most = 1e15},
    {0},
};
static const shoal_option output_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, AT(json), NULL, .help = "print one JSON object at the end instead of the table"},
    {"quiet", 'q', SHOAL_OPTION_FLAG, AT(quiet), NULL, .help = "print only the result, without table and notes"},
    {0},
};
static const shoal_option *const search_options = search_rows, *const goal_options = goal_rows,
                                 *const output_options = output_rows;
static const base_option_group groups[] = {
    {"Search", &search_options, 0},
    {"What to minimise", &goal_options, 0},
    {"Output", &output_options, 0},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static int read_options(plan_search_options *out, const settings *from)
{
    int status = SHOAL_OK;
    *out = (plan_search_options){
        .seed = (uint64_t)from->seed, .least = from->least, .most = from->trials, .improvement = from->improvement};
    out->objective = from->objective != OBJECTIVE_AUTO ? (plan_objective)(from->objective - 1)
                     : from->deadline                  ? PLAN_COST
                                                       : PLAN_TIME;
    if (from->deadline)
        status = plan_parse_duration(&out->deadline, "--deadline", from->deadline);
    if (status == SHOAL_OK && from->budget)
        status = plan_parse_money(&out->budget, "--budget", from->budget);
    return status;
}

static int check_search_settings(const settings *from)
{
    if (!from->space)
        return shoal_fail(SHOAL_USAGE, "plan search needs --space SPACE.json");
    if (!from->run && !from->from)
        return shoal_fail(
            SHOAL_USAGE,
            "plan search needs --run COMMAND to try configurations, or --from RESULTS.csv to print what to try next");
    if (!from->run && (from->journal || from->timeout))
        return shoal_fail(SHOAL_USAGE, "%s needs --run", from->journal ? "--journal" : "--timeout");
    return SHOAL_OK;
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

typedef struct shown {
    bool quiet, table; /* the table is shown as it grows */
    cli_progress progress;
} shown;

static void note_search(void *context, const char *text)
{
    if (!((shown *)context)->quiet)
        fprintf(stderr, "shoal: %s\n", text);
}

static void show_trial(void *context, const plan_session *session, int64_t index, const char *stdout_path,
                       const char *stderr_path)
{
    shown *self = context;
    cli_progress_clear(&self->progress);
    if (self->table)
        cli_search_print_trial(session, index);
    if (stdout_path && !self->quiet)
        cli_search_print_failure(&session->trial[index], stdout_path, stderr_path);
}

static void show_waiting(void *context, const plan_session *session, int64_t candidate, double seconds)
{
    shown *self = context;
    char label[PLAN_SEARCH_LABEL_BYTES], time[PLAN_UNITS_BYTES], line[sizeof label + sizeof time + 64];
    plan_search_label(label, session->space, candidate);
    plan_format_duration(time, floor(seconds));
    snprintf(line, sizeof line, "trial %" PRId64 ": %s, %s", session->trials + 1, label, time);
    cli_progress_say(&self->progress, line);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static int say_end(const settings *from, const plan_session *session)
{
    int status = SHOAL_OK;
    if (from->json)
        status = cli_search_print_json(session);
    else
        cli_search_print_end(session);
    return status == SHOAL_OK && session->next < 0 ? plan_session_check_best(session) : status;
}

static int say_stopped(const settings *from, plan_session *session)
{
    snprintf(session->stopped, sizeof session->stopped, "interrupted");
    if (from->json)
        cli_search_print_json(session);
    const plan_search_journal *journal = session->journal;
    fprintf(stderr, "shoal: interrupted; %" PRId64 " trial%s kept in %s; run the same command to resume\n",
            journal->trials, journal->trials == 1 ? " is" : "s are", journal->path);
    return CLI_INTERRUPTED;
}

static int search(const settings *from, const plan_session_request *request, shown *self)
{
    plan_session *session = NULL;
    int status = plan_session_open(&session, request);
    if (status < 0)
        return status;
    if (self->table)
        cli_search_print_head(session);
    status = plan_session_take_over(session);
    if (status == SHOAL_OK) {
        cli_signals_allow_stop(from->run != NULL);
        status = plan_session_run(session);
        cli_signals_allow_stop(false);
        cli_progress_clear(&self->progress);
        status = status == SHOAL_STOPPED ? say_stopped(from, session)
                 : status == SHOAL_OK    ? say_end(from, session)
                                         : status;
    }
    plan_session_close(&session);
    return status;
}

static int run_plan_search(void *from_main, const char *const *word, int words)
{
    const settings *from = from_main;
    shown self = {.quiet = from->quiet, .table = !from->json && !from->quiet};
    plan_session_request request = {.space = from->space,
                                    .command = from->run,
                                    .results = from->from,
                                    .journal = from->journal,
                                    .prices = from->prices,
                                    .spot = from->spot,
                                    .stop = cli_signals_stop(),
                                    .listener = {&self, note_search, show_trial, show_waiting}};
    (void)word;
    (void)words;
    int status = check_search_settings(from);
    if (status == SHOAL_OK)
        status = read_options(&request.options, from);
    if (status == SHOAL_OK && from->timeout)
        status = plan_parse_duration(&request.timeout, "--timeout", from->timeout);
    if (status < 0)
        return status;
    cli_progress_start(&self.progress, from->quiet);
    return search(from, &request, &self);
}

static const char *const description[] = {
    "Finds the configuration with the least time or cost for a command by trying a few of them. Each trial runs the "
    "command with values filled in for {machine}, {count} and the other parameters of the space; a model of all trials "
    "so far chooses which one to try next, and stops when more would gain little.",
    "The time of a trial is that of its command, unless the command reports it: if its last lines on standard output "
    "are seconds=NUMBER or cost=NUMBER, these are used. The search also learns from commands that fail or exceed "
    "--timeout.",
    "Every trial is written to the journal before the next one starts. Run the same command again to resume, whatever "
    "ended the last one. The output of the commands is kept in a folder next to the journal.",
    "With --from and without --run it only prints what to try next.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal plan search --space space.json --run './job {machine} {count}' --objective cost --deadline 2h",
     "the cheapest configuration that takes at most two hours"},
    {"shoal plan search --space space.json --from results.csv", "what to try next, given the trials of a table"},
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
    .run = run_plan_search,
};
