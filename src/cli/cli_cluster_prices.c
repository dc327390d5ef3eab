/* shoal cluster prices: what machines cost now. */
#include "cluster_verb.h"

#include <math.h>
#include <time.h>

typedef struct settings {
    cli_common common;
    cli_cluster_settings cluster;
} settings;

static const base_option_group groups[] = {
    {"Prices", &cli_cluster_options, offsetof(settings, cluster)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int print_rate_json(const run_rate *rate)
{
    json_t *object = json_object();
    base_json_put(&object, "type", json_string(rate->type));
    base_json_put(&object, "zone", json_string(rate->zone));
    base_json_put(&object, "cores", base_json_real(rate->cores > 0 ? rate->cores : NAN));
    base_json_put(&object, "memory_gib", base_json_real(rate->cores > 0 ? rate->memory_gib : NAN));
    base_json_put(&object, "usd_per_hour_spot", base_json_real(rate->spot));
    base_json_put(&object, "usd_per_hour", base_json_real(rate->demand));
    base_json_put(&object, "asked", json_boolean(rate->asked != 0));
    return cli_print_json(object);
}

static void print_rate(const run_rate *rate)
{
    char spot[24], demand[24], core[24], cores[16] = "-", memory[24] = "-";
    cli_format_dollars(spot, sizeof spot, rate->spot);
    cli_format_dollars(demand, sizeof demand, rate->demand);
    cli_format_dollars(core, sizeof core,
                       rate->cores > 0 ? (isnan(rate->spot) ? rate->demand : rate->spot) / rate->cores : NAN);
    if (rate->cores > 0) {
        snprintf(cores, sizeof cores, "%g", rate->cores);
        snprintf(memory, sizeof memory, "%g GiB", rate->memory_gib);
    }
    printf("%-16s %-16s %5s %9s %10s %10s %10s\n", rate->type, rate->zone, cores, memory, spot, demand, core);
}

static void print_table(const run_rates *rates)
{
    printf("%-16s %-16s %5s %9s %10s %10s %10s\n", "TYPE", "ZONE", "CORES", "MEMORY", "SPOT", "ON DEMAND", "CORE");
    for (int64_t i = 0; i < rates->count; i++)
        print_rate(&rates->rate[i]);
    printf("USD an hour; on demand%s: list prices of %s\n", rates->why ? " and spot" : "", rates->date);
    if (rates->why) {
        fputs("the provider was not asked: ", stdout);
        cli_put_text(stdout, rates->why);
        putchar('\n');
    }
}

static int run_prices(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    run_rates rates;
    (void)words;
    int status = run_rates_get(&rates, word[0], settings->cluster.patience);
    if (status == SHOAL_OK && !settings->cluster.json)
        print_table(&rates);
    for (int64_t i = 0; status == SHOAL_OK && settings->cluster.json && i < rates.count; i++)
        status = print_rate_json(&rates.rate[i]);
    run_rates_release(&rates);
    return status;
}

static const char *const description[] = {
    "Prints what machines of a region cost, the cheapest core first. PLACE is aws:REGION, with TYPE,... behind a slash "
    "to see only these; types may have * in them.",
    "Spot prices are those that the provider tells for each zone at this moment. If it can't be asked, and for prices "
    "on demand, the list prices of this program are shown with their date.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal cluster prices 'aws:eu-west-1/c7i.*'", "one family, in all zones"},
    {"shoal cluster prices aws:eu-west-1/c7i.large,m7i.large --json", "for a script"},
    {NULL, NULL},
};
const cli_verb cli_cluster_prices = {
    .name = "cluster prices",
    .summary = "print what machines cost now",
    .word = {"PLACE"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_prices,
};
