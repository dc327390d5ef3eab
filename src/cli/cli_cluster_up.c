/* shoal cluster up, add, remove, down, show: machines that are rented, and that end by themselves. */
#include "cluster_verb.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "job_print.h"
#include "plan/units.h"
#include "run/cluster/cluster.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    run_cluster_wish wish;
    double patience;
    bool json, quiet;
} settings;

static const shoal_option up_rows[] = {
    {"machines", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.machines), "PLACE",
     .help = "where, and which types of machines, such as aws:eu-west-1/c7i.large,c7i.xlarge"},
    {"count", 'n', SHOAL_OPTION_COUNT, offsetof(settings, wish.count), "N", .help = "how many", .fallback = "1",
     .least = 1, .most = RUN_CLUSTER_MOST},
    {"market", 0, SHOAL_OPTION_CHOICE, offsetof(settings, wish.market), "MARKET",
     .help = "spot; demand; or mixed: on demand where there is no spot", .fallback = "spot",
     .choices = (const char *const[]){"spot", "demand", "mixed", NULL}},
    {"max-price", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.max_price), "USD",
     .help = "most that an hour of one machine may cost (default: what it costs on demand)"},
    {"budget", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.budget), "USD",
     .help = "most that all machines of the cluster may cost, ever (default: what these cost at most)"},
    {"ttl", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.ttl), "TIME",
     .help = "uptime after which a machine is off, whatever it does (default: 1h, or less if the budget is less)"},
    {"idle", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.idle), "TIME",
     .help = "time without a job after which a machine is off", .default_text = "10m"},
    {0},
};
static const shoal_option place_rows[] = {
    {"role", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.role), "NAME",
     .help = "instance profile of the machines: what lets them read and write the store"},
    {"image", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.image), "AMI",
     .help = "image with cloud-init and curl (default: the region's Amazon Linux 2023)"},
    {"key", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.key), "NAME", .help = "key pair for ssh (default: none)"},
    {"subnet", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.subnet), "ID",
     .help = "subnet (default: the default one of each zone)"},
    {"group", 0, SHOAL_OPTION_TEXT, offsetof(settings, wish.group), "ID",
     .help = "security group (default: the default one)"},
    {0},
};
static const shoal_option wait_rows[] = {
    {"wait", 0, SHOAL_OPTION_REAL, offsetof(settings, patience), "SECONDS",
     .help = "how long to wait until the provider says that it is done", .fallback = "600", .least = 0.1,
     .most = 86400},
    {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(settings, quiet), NULL, .help = "print no progress"},
    {0},
};
static const shoal_option show_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL, .help = "print one JSON object"},
    {0},
};
static const shoal_option *const up_options = up_rows, *const place_options = place_rows,
                                 *const wait_options = wait_rows, *const show_options = show_rows;
static const base_option_group up_groups[] = {
    {"Machines", &up_options, 0},
    {"Provider", &place_options, 0},
    {"Waiting", &wait_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group change_groups[] = {
    {"Waiting", &wait_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group show_groups[] = {
    {"Printing", &show_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static double dollars(int64_t money)
{
    return (double)money / (double)LEDGER_UNIT;
}

static void print_money(const run_cluster *cluster)
{
    char spent[PLAN_UNITS_BYTES], reserved[PLAN_UNITS_BYTES], budget[PLAN_UNITS_BYTES];
    const ledger *book = &cluster->ledger;
    if (!cluster->has_secret) {
        printf("money      the secret of the ledger is not with this user; %s made it\n", cluster->spec.by);
        return;
    }
    plan_format_money(spent, dollars(book->spent));
    plan_format_money(reserved, dollars(ledger_committed(book) - book->spent));
    plan_format_money(budget, dollars(book->budget));
    printf("money      spent %s, reserved %s, budget %s (USD; at the highest price)\n", spent, reserved, budget);
}

static void print_machine(const run_cluster *cluster, const cloud_machine *machine)
{
    char age[24] = "-", hourly[PLAN_UNITS_BYTES] = "-";
    const ledger_entry *entry = run_cluster_entry(cluster, machine);
    if (machine->launched > 0)
        cli_format_age(age, sizeof age, (double)time(NULL) - (double)machine->launched);
    if (entry)
        plan_format_money(hourly, dollars(entry->cap));
    printf("%-20s %-14s %-14s %-7s %-8s %-15s %-8s %-10s %s\n", machine->id, machine->type, machine->zone,
           cloud_market_name(machine->market), cloud_state_name(machine->state),
           *machine->address ? machine->address : "-", age, hourly,
           entry || !cluster->has_secret ? "" : "in no ledger");
}

static void print_cluster(const run_cluster *cluster)
{
    char lives[PLAN_UNITS_BYTES], idle[PLAN_UNITS_BYTES];
    plan_format_duration(lives, (double)cluster->spec.allowed);
    plan_format_duration(idle, cluster->spec.idle);
    printf("cluster    %s, of %s in %s%s\n", cluster->spec.name, cluster->spec.machines, cluster->url,
           cluster->spec.down ? "; being ended" : "");
    printf("machines   off after %s, or %s without a job\n", lives, idle);
    print_money(cluster);
    int64_t shown = 0;
    for (int64_t i = 0; i < cluster->found.count; i++)
        if (run_cluster_is_alive(cluster, &cluster->found.machine[i])) {
            if (shown++ == 0)
                printf("%-20s %-14s %-14s %-7s %-8s %-15s %-8s %s\n", "MACHINE", "TYPE", "ZONE", "MARKET", "STATE",
                       "ADDRESS", "AGE", "AT MOST");
            print_machine(cluster, &cluster->found.machine[i]);
        }
    if (shown == 0)
        puts("no machines");
}

static json_t *machine_json(const run_cluster *cluster, const cloud_machine *machine)
{
    json_t *object = json_object();
    const ledger_entry *entry = run_cluster_entry(cluster, machine);
    base_json_put(&object, "machine", json_string(machine->id));
    base_json_put(&object, "type", base_json_text(machine->type));
    base_json_put(&object, "zone", base_json_text(machine->zone));
    base_json_put(&object, "market", json_string(cloud_market_name(machine->market)));
    base_json_put(&object, "state", json_string(cloud_state_name(machine->state)));
    base_json_put(&object, "address", base_json_text(machine->address));
    base_json_put(&object, "launched", json_integer(machine->launched));
    base_json_put(&object, "usd_per_hour_most", base_json_real(entry ? dollars(entry->cap) : NAN));
    base_json_put(&object, "in_ledger", json_boolean(entry != NULL));
    return object;
}

static int print_cluster_json(const run_cluster *cluster)
{
    json_t *object = json_object(), *machines = json_array();
    const ledger *book = &cluster->ledger;
    base_json_put(&object, "cluster", json_string(cluster->spec.name));
    base_json_put(&object, "machines_of", json_string(cluster->spec.machines));
    base_json_put(&object, "allowed_seconds", json_integer(cluster->spec.allowed));
    base_json_put(&object, "idle_seconds", base_json_real(cluster->spec.idle));
    base_json_put(&object, "down", json_boolean(cluster->spec.down));
    if (cluster->has_secret) {
        base_json_put(&object, "usd_spent", base_json_real(dollars(book->spent)));
        base_json_put(&object, "usd_committed", base_json_real(dollars(ledger_committed(book))));
        base_json_put(&object, "usd_budget", base_json_real(dollars(book->budget)));
        base_json_put(&object, "reservations", json_integer(book->count));
    }
    for (int64_t i = 0; i < cluster->found.count; i++)
        if (run_cluster_is_alive(cluster, &cluster->found.machine[i]))
            json_array_append_new(machines, machine_json(cluster, &cluster->found.machine[i]));
    base_json_put(&object, "machines", machines);
    return cli_print_json(object);
}

/* ---- watching ---------------------------------------------------------------------------------------------------- */

static void show_progress(void *context, const char *line)
{
    cli_progress *progress = context;
    cli_progress_say(progress, line);
}

static run_cluster_watch begin_watch(cli_progress *progress, const settings *settings)
{
    cli_progress_start(progress, settings->quiet);
    cli_signals_allow_stop(true);
    return (run_cluster_watch){
        .say = show_progress, .stopped = cli_signals_stopped, .context = progress, .patience = settings->patience};
}

static void end_watch(cli_progress *progress)
{
    cli_signals_allow_stop(false);
    cli_progress_clear(progress);
}

/* Starts that many more, and shows what there is, also when some are missing. */
static int grow(run_cluster *cluster, const settings *settings, int64_t count)
{
    cli_progress progress = {0};
    run_cluster_watch watch = begin_watch(&progress, settings);
    int status = run_cluster_grow(cluster, count, &watch);
    end_watch(&progress);
    if (!settings->quiet)
        print_cluster(cluster);
    return status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static int run_up(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    run_jobs jobs = {0};
    run_cluster *cluster = NULL;
    (void)words;
    settings->wish.name = word[0];
    if (!settings->wish.machines)
        return shoal_fail(SHOAL_USAGE, "cluster up needs --machines PLACE, such as aws:eu-west-1/c7i.large");
    int status = run_jobs_open(&jobs, &settings->jobs, RUN_JOBS_CREATE);
    if (status == SHOAL_OK)
        status = run_cluster_create(&cluster, &jobs, &settings->wish);
    if (status == SHOAL_OK)
        status = grow(cluster, settings, settings->wish.count);
    run_cluster_close(&cluster);
    run_jobs_close(&jobs);
    return status;
}

static int open_cluster(run_jobs *jobs, run_cluster **cluster, const settings *settings, const char *name)
{
    int status = run_jobs_open(jobs, &settings->jobs, RUN_JOBS_WRITE);
    return status == SHOAL_OK ? run_cluster_open(cluster, jobs, name) : status;
}

static bool read_count(int64_t *count, const char *text)
{
    return base_parse_count(count, text) && *count >= 1 && *count <= RUN_CLUSTER_MOST;
}

static int run_add(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    run_jobs jobs = {0};
    run_cluster *cluster = NULL;
    int64_t count = 0;
    (void)words;
    if (!read_count(&count, word[1]))
        return shoal_fail(SHOAL_USAGE, "'%s' is not a number of machines from 1 to %d", word[1], RUN_CLUSTER_MOST);
    int status = open_cluster(&jobs, &cluster, settings, word[0]);
    if (status == SHOAL_OK && cluster->spec.down)
        status = shoal_fail(SHOAL_USAGE, "cluster '%s' is being ended", word[0]);
    if (status == SHOAL_OK)
        status = grow(cluster, settings, count);
    run_cluster_close(&cluster);
    run_jobs_close(&jobs);
    return status;
}

static int run_remove(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    run_jobs jobs = {0};
    run_cluster *cluster = NULL;
    int64_t count = 0;
    (void)words;
    bool counted = read_count(&count, word[1]);
    int status = open_cluster(&jobs, &cluster, settings, word[0]);
    if (status == SHOAL_OK)
        status = run_cluster_remove(cluster, counted ? NULL : word[1], count);
    if (status == SHOAL_OK && !settings->quiet)
        print_cluster(cluster);
    run_cluster_close(&cluster);
    run_jobs_close(&jobs);
    return status;
}

static int run_show(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    run_jobs jobs = {0};
    run_cluster *cluster = NULL;
    (void)words;
    int status = open_cluster(&jobs, &cluster, settings, word[0]);
    if (status == SHOAL_OK)
        status = cluster->has_secret ? run_cluster_tick(cluster) : run_cluster_look_only(cluster);
    if (status == SHOAL_OK && settings->json)
        status = print_cluster_json(cluster);
    else if (status == SHOAL_OK)
        print_cluster(cluster);
    run_cluster_close(&cluster);
    run_jobs_close(&jobs);
    return status;
}

static void print_down(const run_cluster *cluster, int64_t held)
{
    char spent[PLAN_UNITS_BYTES];
    plan_format_money(spent, dollars(cluster->ledger.spent));
    printf("cluster '%s' has no machines", cluster->spec.name);
    if (cluster->has_secret)
        printf("; it cost at most %s", spent);
    else
        printf("; what it cost is not known without its ledger");
    putchar('\n');
    if (held > 0) /* ledger_terms of clusters: 660 + 60 + 600 seconds */
        printf(
            "%lld reservation%s kept for machines whose start was never answered and may still come: run the command "
            "again in about 25 minutes\n",
            (long long)held, held == 1 ? " is" : "s are");
}

static int run_down(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    run_jobs jobs = {0};
    run_cluster *cluster = NULL;
    cli_progress progress = {0};
    int64_t held = 0;
    (void)words;
    int status = open_cluster(&jobs, &cluster, settings, word[0]);
    if (status == SHOAL_OK) {
        run_cluster_watch watch = begin_watch(&progress, settings);
        status = run_cluster_down(cluster, &held, &watch);
        end_watch(&progress);
    }
    if (status == SHOAL_OK && !settings->quiet)
        print_down(cluster, held);
    run_cluster_close(&cluster);
    run_jobs_close(&jobs);
    return status;
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

static const char *const up_description[] = {
    "Rents machines that serve the jobs of a store, and returns when they run. Each fetches this program from the "
    "store, starts a worker with all its cores, and is off when it has had no job for --idle, when it has been up "
    "for --ttl, or when the provider takes it away. Nobody has to be there for that: the power-off is armed "
    "before anything else.",
    "Before a machine is started, what it can cost at most is reserved in a ledger in the store: the highest "
    "price for --ttl and two minutes more. So all machines together never cost more than --budget. What was "
    "reserved and not used is given back when the provider shows that the machine has ended.",
    "Types and zones are chosen by their price now, over several of them. One that has no capacity, or costs more "
    "than --max-price, is tried again later, after pauses that grow.",
    NULL,
};
static const learn_example up_examples[] = {
    {"shoal cluster up mine --store s3://bucket/jobs --machines aws:eu-west-1/c7i.large,c7i.xlarge -n 8 --role "
     "workers",
     "eight spot machines for an hour"},
    {"shoal cluster up mine --store s3://bucket/jobs --machines aws:eu-west-1/c7i.large -n 4 --market mixed --budget "
     "5USD --ttl 8h --role workers",
     "on demand where there is no spot"},
    {NULL, NULL},
};
const cli_verb cli_cluster_up = {.name = "cluster up",
                                 .summary = "rent machines that serve the jobs of a store",
                                 .word = {"NAME"},
                                 .words_least = 1,
                                 .synopsis = "--machines PLACE [options]",
                                 .description = up_description,
                                 .examples = up_examples,
                                 .options = up_groups,
                                 .settings_size = sizeof(settings),
                                 .run = run_up};

static const char *const add_description[] = {
    "Rents N machines more for a cluster, as cluster up did for the first ones, within its budget.", NULL};
static const learn_example add_examples[] = {{"shoal cluster add mine 4 --store s3://bucket/jobs", "four more"},
                                             {NULL, NULL}};
const cli_verb cli_cluster_add = {.name = "cluster add",
                                  .summary = "rent more machines for a cluster",
                                  .word = {"NAME", "N"},
                                  .words_least = 2,
                                  .synopsis = "[options]",
                                  .description = add_description,
                                  .examples = add_examples,
                                  .options = change_groups,
                                  .settings_size = sizeof(settings),
                                  .run = run_add};

static const char *const remove_description[] = {
    "Ends N machines of a cluster, the newest first, or the one that is named. The others take over their work.", NULL};
static const learn_example remove_examples[] = {
    {"shoal cluster remove mine 2", "the two newest"},
    {"shoal cluster remove mine i-0123456789abcdef0", "that one"},
    {NULL, NULL},
};
const cli_verb cli_cluster_remove = {.name = "cluster remove",
                                     .summary = "end some machines of a cluster",
                                     .word = {"NAME", "N|MACHINE"},
                                     .words_least = 2,
                                     .synopsis = "[options]",
                                     .description = remove_description,
                                     .examples = remove_examples,
                                     .options = change_groups,
                                     .settings_size = sizeof(settings),
                                     .run = run_remove};

static const char *const down_description[] = {
    "Ends all machines of a cluster, waits until the provider shows that they have ended, and says what they cost at "
    "most. Jobs stay in the store. It may be repeated; and it ends machines even where the ledger's secret is lost.",
    NULL,
};
static const learn_example down_examples[] = {{"shoal cluster down mine", "end it"}, {NULL, NULL}};
const cli_verb cli_cluster_down = {.name = "cluster down",
                                   .summary = "end all machines of a cluster",
                                   .word = {"NAME"},
                                   .words_least = 1,
                                   .synopsis = "[options]",
                                   .description = down_description,
                                   .examples = down_examples,
                                   .options = change_groups,
                                   .settings_size = sizeof(settings),
                                   .run = run_down};

static const char *const show_description[] = {
    "Prints a cluster's machines, as the provider lists them, and its money: spent, reserved, budget. What the listing "
    "proves goes into the ledger, and machines that have no reservation there are ended.",
    NULL,
};
static const learn_example show_examples[] = {{"shoal cluster show mine", "its machines and its money"}, {NULL, NULL}};
const cli_verb cli_cluster_show = {.name = "cluster show",
                                   .summary = "print a cluster's machines and money",
                                   .word = {"NAME"},
                                   .words_least = 1,
                                   .synopsis = "[options]",
                                   .description = show_description,
                                   .examples = show_examples,
                                   .options = show_groups,
                                   .settings_size = sizeof(settings),
                                   .run = run_show};
