/* What the options of `shoal plan LEARNER` mean.  One that would have no effect with the others is refused: whoever
 * gives it believes that it counts.  See plan_verb.h. */
#include <math.h>
#include <string.h>

#include "base/option.h"
#include "plan/units.h"
#include "plan_verb.h"

typedef struct given {
    const char *name;
    bool is;
} given;

/* The first of a list that ends with a row without a name; NULL when none is given. */
static const char *first_given(const given *list)
{
    while (list->name && !list->is)
        list++;
    return list->name;
}

static bool is_other(const char *text, const char *fallback)
{
    return text && strcmp(text, fallback) != 0;
}

static int check_paper(const cli_plan_asked *asked, bool local)
{
    const cli_plan_settings *set = asked->settings;
    if (strcmp(asked->algorithm->name, "kmeans") != 0)
        return shoal_fail(SHOAL_USAGE, "--model paper: the paper models k-means only, not %s", asked->algorithm->name);
    if (set->machines || set->prices)
        return shoal_fail(SHOAL_USAGE, "--model paper: all its machines are alike: use --price instead of %s",
                          set->machines ? "--machines" : "--prices");
    const given ignored[] = {{"--workers local", local},
                             {"--type", set->type != 0},
                             {"--source", set->source != 0},
                             {"--reduce", is_other(set->reduce, "auto")},
                             {"--roles", set->roles != 0},
                             {"--spot", set->spot},
                             {"--threads", set->threads > 0},
                             {"--speed", set->speed != 1},
                             {"--start", set->start != NULL},
                             {"--losses", set->losses != NULL},
                             {"--replace", is_other(set->replace, "30s")},
                             {"--store", set->store != NULL},
                             {"--no-probe", set->no_probe},
                             {"--account-bandwidth", set->account_bandwidth > 0},
                             {"--latency", set->latency > 0},
                             {"--connections", set->connections > 0},
                             {"--straggle", set->straggle != NULL},
                             {0}};
    const char *name = first_given(ignored);
    return name ? shoal_fail(SHOAL_USAGE, "%s has no effect with --model paper: omit it", name) : SHOAL_OK;
}

/* What is said of money, where nobody says what a machine costs. */
static int check_prices(const cli_plan_settings *set)
{
    const given priced[] = {{"--budget", set->budget != NULL},
                            {"--objective", set->objective >= PLAN_GOAL_COST},
                            {"--billed", is_other(set->billed, "1s")},
                            {0}};
    const bool known = set->model == CLI_PLAN_PAPER || set->machines || set->prices || set->price;
    const char *name = known ? NULL : first_given(priced);
    return name ? shoal_fail(SHOAL_USAGE, "%s needs the price of a machine: use --machines or --price", name)
                : SHOAL_OK;
}

static int check_crew(const cli_plan_settings *set, bool local)
{
    bool machines = set->machines || set->prices;
    if (set->spot && !machines)
        return shoal_fail(SHOAL_USAGE, "--spot needs --machines");
    if (local && machines)
        return shoal_fail(SHOAL_USAGE, "--workers local: means processes of this machine, but %s names others",
                          set->machines ? "--machines" : "--prices");
    if (machines && set->price)
        return shoal_fail(SHOAL_USAGE, "--price: %s already has prices; use one of them",
                          set->machines ? "--machines" : "--prices");
    if (is_other(set->replace, "30s") && !set->spot && !set->losses)
        return shoal_fail(SHOAL_USAGE, "--replace has no effect without --losses or --spot");
    return SHOAL_OK;
}

/* An address, a scheme alone, or a folder. */
static int check_store_option(const char *store)
{
    static const char *const schemes[] = {"dir", "az", "s3", "mem", "pipe", "ssh", "slurm"};
    char name[256];
    if (!store)
        return SHOAL_OK;
    if (!*store)
        return shoal_fail(SHOAL_USAGE, "--store needs a URL or a kind of store: dir, az, s3");
    plan_calibration_name(name, sizeof name, store);
    name[strcspn(name, ":")] = '\0';
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strcmp(name, schemes[i]) == 0)
            return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--store %s: unknown kind of store '%s'; use dir, az, s3, ssh or slurm", store,
                      name);
}

/* What says how large the data are. */
static int check_data(const cli_plan_asked *asked)
{
    const cli_plan_settings *set = asked->settings;
    if (!asked->path && (set->rows <= 0 || set->columns <= 0))
        return shoal_fail(SHOAL_USAGE, "the size of the data is unknown: give DATA, or --rows and --cols");
    if (asked->path && set->type != 0)
        return shoal_fail(SHOAL_USAGE, "--type: %s has its own type; --type is for data that are not here",
                          asked->path);
    if (asked->path && (set->rows > 0 || set->columns > 0))
        return shoal_fail(SHOAL_USAGE, "--rows and --cols: %s has its own size; they are for data that are not here",
                          asked->path);
    return SHOAL_OK;
}

int cli_plan_check(const cli_plan_asked *asked, bool local)
{
    const cli_plan_settings *set = asked->settings;
    int status = check_data(asked);
    if (status < 0)
        return status;
    status = set->model == CLI_PLAN_PAPER ? check_paper(asked, local) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = check_crew(set, local);
    if (status == SHOAL_OK)
        status = check_prices(set);
    return status == SHOAL_OK ? check_store_option(set->store) : status;
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

/* A number whose 0 means something, so that one that was not given is NaN. */
static int read_option_real(double *out, const char *name, const char *text, double most)
{
    double value = NAN;
    if (text && (!base_parse_real(&value, text) || !(value >= 0 && value <= most)))
        return shoal_fail(SHOAL_USAGE, "%s: must be a number from 0 to %g, not '%s'", name, most, text);
    *out = value;
    return SHOAL_OK;
}

static int read_texts(plan_request *out, const cli_plan_settings *set)
{
    int status = read_option_real(&out->straggle, "--straggle", set->straggle, 5);
    if (status == SHOAL_OK)
        status = read_option_real(&out->losses, "--losses", set->losses, 1e6);
    if (status == SHOAL_OK)
        status = read_option_real(&out->price, "--price", set->price, 1e9);
    out->start = NAN;
    if (status == SHOAL_OK && set->start)
        status = plan_parse_pause(&out->start, "--start", set->start);
    if (status == SHOAL_OK)
        status = plan_parse_pause(&out->replace, "--replace", set->replace);
    if (status == SHOAL_OK)
        status = plan_parse_duration(&out->billed, "--billed", set->billed);
    if (status == SHOAL_OK && set->deadline)
        status = plan_parse_duration(&out->deadline, "--deadline", set->deadline);
    if (status == SHOAL_OK && set->budget)
        status = plan_parse_money(&out->budget, "--budget", set->budget);
    return status;
}

/* Whether any option is about workers on other machines, or a store between them. */
static bool is_about_workers(const cli_plan_settings *set)
{
    const given about[] = {{"--workers", set->workers != NULL},
                           {"--machines", set->machines != NULL},
                           {"--prices", set->prices != NULL},
                           {"--price", set->price != NULL},
                           {"--spot", set->spot},
                           {"--losses", set->losses != NULL},
                           {"--speed", set->speed != 1},
                           {"--store", set->store != NULL},
                           {"--source", set->source != 0},
                           {"--roles", set->roles != 0},
                           {"--bandwidth", set->bandwidth > 0 || set->write_bandwidth > 0},
                           {"--account-bandwidth", set->account_bandwidth > 0},
                           {"--latency", set->latency > 0},
                           {"--connections", set->connections > 0},
                           {"--model paper", set->model == CLI_PLAN_PAPER},
                           {0}};
    return first_given(about) != NULL;
}

/* Without a word about workers it is this machine that is planned.  A plain number is what it is in a run, processes of
 * this machine, unless machines are named for them. */
static int read_workers(plan_request *out, const cli_plan_settings *set)
{
    char local[32];
    const char *text = set->workers ? set->workers : "1..256";
    bool elsewhere = set->machines || set->prices || set->price || set->model == CLI_PLAN_PAPER;
    out->here = !is_about_workers(set);
    out->workers.local = out->here;
    if (out->here)
        return SHOAL_OK;
    if (*text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 12 && !elsewhere) {
        snprintf(local, sizeof local, "local:%s", text);
        text = local;
    }
    return plan_workers_parse(&out->workers, text);
}

int cli_plan_read(plan_request *out, const cli_plan_asked *asked)
{
    static const shoal_type by_choice[] = {SHOAL_FLOAT32, SHOAL_FLOAT32, SHOAL_FLOAT64, SHOAL_UINT8};
    const cli_plan_settings *set = asked->settings;
    *out = (plan_request){.algorithm = asked->algorithm,
                          .config = asked->config,
                          .path = asked->path,
                          .data = asked->data,
                          .open = asked->open,
                          .shape = {.rows = set->rows, .columns = set->columns, .type = by_choice[set->type]},
                          .classes = asked->classes,
                          .rounds = asked->rounds,
                          .source = set->source - 1,
                          .reduce = set->reduce,
                          .split_roles = set->roles == CLI_PLAN_SPLIT,
                          .machines = set->machines,
                          .prices = set->prices,
                          .threads = (double)set->threads,
                          .spot = set->spot,
                          .speed = set->speed,
                          .goal = (plan_goal)set->objective,
                          .flops = set->flops,
                          .bandwidth = set->bandwidth,
                          .write_bandwidth = set->write_bandwidth,
                          .account_bandwidth = set->account_bandwidth,
                          .latency = set->latency,
                          .connections = set->connections,
                          .store = set->store,
                          .no_probe = set->no_probe,
                          .by_paper = set->model == CLI_PLAN_PAPER};
    int status = read_workers(out, set);
    if (status == SHOAL_OK)
        status = cli_plan_check(asked, out->workers.local);
    if (status == SHOAL_OK && out->by_paper) {
        const shoal_kmeans_config *config = asked->config;
        out->clusters = (double)config->k;
        out->iterations = (double)config->iterations;
    }
    return status == SHOAL_OK ? read_texts(out, set) : status;
}
