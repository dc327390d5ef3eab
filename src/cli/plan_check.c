/* Options of `shoal plan LEARNER` that say nothing beside others.  They are refused: who gives one believes that it
 * counts.  See plan_verb.h. */
#include <string.h>
#include <strings.h>

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

bool cli_plan_is_priced(const cli_plan_settings *set)
{
    return set->model == CLI_PLAN_PAPER || set->machines || set->prices || set->price;
}

static int check_paper(const cli_plan_asked *asked, bool local)
{
    const cli_plan_settings *set = asked->settings;
    if (asked->algorithm != &shoal_kmeans)
        return shoal_fail(SHOAL_USAGE, "--model paper: the paper has a model of k-means only, not of %s",
                          asked->algorithm->name);
    if (set->machines || set->prices)
        return shoal_fail(SHOAL_USAGE, "--model paper: its machines are all alike: --price instead of %s",
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
    return name ? shoal_fail(SHOAL_USAGE, "%s: the paper's model knows nothing of that; leave it out", name) : SHOAL_OK;
}

/* What is said of money, where nobody says what a machine costs. */
static int check_prices(const cli_plan_settings *set)
{
    const given priced[] = {{"--budget", set->budget != NULL},
                            {"--objective", set->objective >= PLAN_WISH_COST},
                            {"--billed", is_other(set->billed, "1s")},
                            {0}};
    const char *name = cli_plan_is_priced(set) ? NULL : first_given(priced);
    return name ? shoal_fail(SHOAL_USAGE, "%s: what does a machine cost? --machines or --price says it", name)
                : SHOAL_OK;
}

static int check_crew(const cli_plan_settings *set, bool local)
{
    bool machines = set->machines || set->prices;
    if (set->spot && !machines)
        return shoal_fail(SHOAL_USAGE, "--spot: which machines? --machines says it");
    if (local && machines)
        return shoal_fail(SHOAL_USAGE, "--workers local: are processes of this machine, and %s names others",
                          set->machines ? "--machines" : "--prices");
    if (machines && set->price)
        return shoal_fail(SHOAL_USAGE, "--price: %s says what machines cost; leave out one of them",
                          set->machines ? "--machines" : "--prices");
    if (is_other(set->replace, "30s") && !set->spot && !set->losses)
        return shoal_fail(SHOAL_USAGE, "--replace: no worker is lost unless --losses says how often");
    return SHOAL_OK;
}

/* An address, a scheme alone, or a folder. */
static int check_store(const char *store)
{
    static const char *const schemes[] = {"dir", "az", "s3", "mem", "pipe", "ssh", "slurm"};
    char name[256];
    if (!store)
        return SHOAL_OK;
    if (!*store)
        return shoal_fail(SHOAL_USAGE, "--store needs the URL of a store, or a kind of it: dir, az, s3");
    plan_calibration_name(name, sizeof name, store);
    name[strcspn(name, ":")] = '\0';
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strcmp(name, schemes[i]) == 0)
            return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "--store %s: there is no kind of store called '%s'; there are dir, az, s3, ssh, slurm", store,
                      name);
}

/* It is drawn as SVG, whatever the file is called. */
static int check_picture(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *dot = path ? strrchr(slash ? slash : path, '.') : NULL;
    if (!dot || strcasecmp(dot, ".svg") == 0)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--picture %s: plans are drawn as .svg", path);
}

int cli_plan_check(const cli_plan_asked *asked, bool local)
{
    const cli_plan_settings *set = asked->settings;
    if (asked->path && set->type != 0)
        return shoal_fail(SHOAL_USAGE, "%s says which type its values have: --type is for data that are not here",
                          asked->path);
    int status = set->model == CLI_PLAN_PAPER ? check_paper(asked, local) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = check_crew(set, local);
    if (status == SHOAL_OK)
        status = check_prices(set);
    if (status == SHOAL_OK)
        status = check_store(set->store);
    return status == SHOAL_OK ? check_picture(set->picture) : status;
}
