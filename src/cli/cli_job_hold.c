/* shoal job deadline and budget: what a running job is held to. */
#include "cli.h"

#include <math.h>
#include <string.h>

#include "base/world.h"
#include "plan/units.h"
#include "run/jobs.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    const char *price;
    bool or_stop;
} settings;

static const shoal_option deadline_rows[] = {
    {"or-stop", 0, SHOAL_OPTION_FLAG, offsetof(settings, or_stop), NULL,
     .help = "stop the job as soon as it can't be met (default: as before)"},
    {0},
};
static const shoal_option budget_rows[] = {
    {"price", 0, SHOAL_OPTION_TEXT, offsetof(settings, price), "MONEY",
     .help = "what an hour of one worker costs (default: as before)"},
    {"or-stop", 0, SHOAL_OPTION_FLAG, offsetof(settings, or_stop), NULL,
     .help = "stop the job as soon as it does not reach the end (default: as before)"},
    {0},
};
static const shoal_option *const deadline_options = deadline_rows, *const budget_options = budget_rows;
static const base_option_group deadline_groups[] = {
    {"Holding", &deadline_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group budget_groups[] = {
    {"Holding", &budget_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* What was asked for; NAN leaves it as it is, 0 is none. */
typedef struct wish {
    const settings *settings;
    double deadline, budget, price;
} wish;

static int apply_wish(void *context, control_aim *aim)
{
    const wish *self = context;
    if (!isnan(self->deadline))
        aim->deadline = self->deadline;
    if (!isnan(self->price))
        aim->price = self->price;
    if (!isnan(self->budget))
        aim->budget = self->budget;
    aim->or_stop = aim->or_stop || self->settings->or_stop;
    if (aim->budget > 0 && aim->price <= 0)
        return shoal_fail(SHOAL_USAGE, "job budget needs --price MONEY: what an hour of one worker costs");
    if (self->budget > 0 && self->budget < aim->price / 60)
        return shoal_fail(SHOAL_USAGE, "job budget: this is less than the first minute of one worker costs");
    return SHOAL_OK;
}

static int hold(const wish *wish, const char *text, const char *id_text, const char *what)
{
    char id[SHOAL_JOB_ID_BYTES];
    run_jobs jobs = {0};
    int status = run_jobs_open_one(&jobs, id, &wish->settings->jobs, RUN_JOBS_WRITE, id_text);
    if (status == SHOAL_OK)
        status = run_jobs_hold(&jobs, id, apply_wish, (void *)wish);
    if (status == SHOAL_OK && strcmp(text, "none") == 0)
        printf("job %s has no %s any more\n", id, what);
    else if (status == SHOAL_OK)
        printf("job %s is held to a %s of %s%s\n", id, what, text, strcmp(what, "deadline") == 0 ? " from now" : "");
    run_jobs_close(&jobs);
    return status;
}

static int run_deadline(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const char *text = word[words - 1];
    wish wish = {.settings = settings, .deadline = 0, .budget = NAN, .price = NAN};
    double seconds = 0;
    int status = strcmp(text, "none") == 0 ? SHOAL_OK : plan_parse_duration(&seconds, "job deadline", text);
    if (status < 0)
        return status;
    wish.deadline = seconds > 0 ? (double)base_wall_now() / 1e9 + seconds : 0;
    return hold(&wish, text, words == 2 ? word[0] : NULL, "deadline");
}

static int run_budget(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const char *text = word[words - 1];
    wish wish = {.settings = settings, .deadline = NAN, .budget = 0, .price = NAN};
    int status = strcmp(text, "none") == 0 ? SHOAL_OK : plan_parse_money(&wish.budget, "job budget", text);
    if (status == SHOAL_OK && settings->price)
        status = plan_parse_money(&wish.price, "--price", settings->price);
    return status == SHOAL_OK ? hold(&wish, text, words == 2 ? word[0] : NULL, "budget") : status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const deadline_description[] = {
    "Holds a running job to end within TIME from now, or no longer to a deadline: none. The process that started its "
    "workers goes by it within a few seconds: it starts as many as 95% of cases need, up to those of --workers, and "
    "ends those that are not needed. shoal job show says when the job will end.",
    NULL,
};
static const learn_example deadline_examples[] = {
    {"shoal job deadline kmeans-4f 90m", "an hour and a half from now"},
    {"shoal job deadline none", "the only job there is: it keeps the workers it has"},
    {NULL, NULL},
};
const cli_verb cli_job_deadline = {
    .name = "job deadline",
    .summary = "hold a running job to a deadline",
    .word = {"ID", "TIME|none"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = deadline_description,
    .examples = deadline_examples,
    .options = deadline_groups,
    .settings_size = sizeof(settings),
    .run = run_deadline,
};

static const char *const budget_description[] = {
    "Holds a running job to cost at most MONEY in all, or no longer to a budget: none. What its workers cost is "
    "counted at --price from when they are started until they are gone; before more is spent the job stops, and can be "
    "resumed.",
    NULL,
};
static const learn_example budget_examples[] = {
    {"shoal job budget kmeans-4f 8USD --price 0.03USD", "for everything from its beginning"},
    {NULL, NULL},
};
const cli_verb cli_job_budget = {
    .name = "job budget",
    .summary = "hold a running job to a budget",
    .word = {"ID", "MONEY|none"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = budget_description,
    .examples = budget_examples,
    .options = budget_groups,
    .settings_size = sizeof(settings),
    .run = run_budget,
};
