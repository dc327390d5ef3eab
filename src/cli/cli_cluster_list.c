/* shoal cluster list: every machine that a provider has for us. */
#include "cluster_verb.h"

#include <time.h>

#include "job_print.h"

typedef struct settings {
    cli_common common;
    cli_cluster_settings cluster;
    bool all;
} settings;

static const shoal_option rows[] = {
    {"all", 0, SHOAL_OPTION_FLAG, offsetof(settings, all), NULL,
     .help = "list machines that have ended, too, as long as the provider knows them"},
    {0},
};
static const shoal_option *const options = rows;
static const base_option_group groups[] = {
    {"List", &options, 0},
    {"Provider", &cli_cluster_options, offsetof(settings, cluster)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int print_machine_json(const cloud *place, const cloud_machine *machine)
{
    json_t *object = json_object();
    base_json_put(&object, "place", json_string(place->name));
    base_json_put(&object, "cluster", base_json_text(machine->cluster));
    base_json_put(&object, "machine", json_string(machine->id));
    base_json_put(&object, "type", base_json_text(machine->type));
    base_json_put(&object, "zone", base_json_text(machine->zone));
    base_json_put(&object, "market", json_string(cloud_market_name(machine->market)));
    base_json_put(&object, "state", json_string(cloud_state_name(machine->state)));
    base_json_put(&object, "launched", json_integer(machine->launched));
    base_json_put(&object, "address", base_json_text(machine->address));
    base_json_put(&object, "reservation", base_json_text(machine->reservation));
    if (*machine->reason)
        base_json_put(&object, "reason", base_json_text(machine->reason));
    return cli_print_json(object);
}

static int show_machine(const settings *settings, const cloud *place, const cloud_machine *machine, bool first)
{
    char age[24] = "-";
    if (settings->cluster.json)
        return print_machine_json(place, machine);
    if (machine->launched > 0)
        cli_format_age(age, sizeof age, (double)time(NULL) - (double)machine->launched);
    if (first)
        printf("%-16s %-20s %-14s %-14s %-7s %-8s %-15s %s\n", "CLUSTER", "MACHINE", "TYPE", "ZONE", "MARKET", "STATE",
               "ADDRESS", "AGE");
    printf("%-16s %-20s %-14s %-14s %-7s %-8s %-15s %s\n", machine->cluster, machine->id, machine->type, machine->zone,
           cloud_market_name(machine->market), cloud_state_name(machine->state),
           *machine->address ? machine->address : "-", age);
    return SHOAL_OK;
}

static int list_place(const settings *settings, const char *text, int64_t *shown)
{
    cloud *place = NULL;
    cloud_machines found = {0};
    int status = cloud_open(&place, text);
    if (status == SHOAL_OK)
        status = cloud_list(&found, place, NULL, shoal_after(settings->cluster.patience));
    for (int64_t i = 0; i < found.count && status == SHOAL_OK; i++)
        if (settings->all || found.machine[i].state != CLOUD_ENDED)
            status = show_machine(settings, place, &found.machine[i], (*shown)++ == 0);
    cloud_machines_release(&found);
    cloud_close(&place);
    return status;
}

static int run_cluster_list(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    int64_t shown = 0;
    int status = words == 0 ? list_place(settings, "aws:", &shown) : SHOAL_OK;
    for (int i = 0; i < words && status == SHOAL_OK; i++)
        status = list_place(settings, word[i], &shown);
    if (status == SHOAL_OK && shown == 0 && !settings->cluster.json)
        puts("there are no machines of clusters");
    return status;
}

static const char *const description[] = {
    "Lists the machines of all clusters in some regions, as the provider knows them: by the tag that each machine was "
    "started with. So it finds every machine even if all other records of it are lost. Machines that have ended are "
    "left out without --all.",
    "PLACE is aws:REGION; without one it is AWS_REGION.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal cluster list", "what runs, and costs money, in AWS_REGION"},
    {"shoal cluster list aws:eu-west-1 aws:us-east-1 --json", "two regions, for a script"},
    {NULL, NULL},
};
const cli_verb cli_cluster_list = {
    .name = "cluster list",
    .summary = "list the machines of all clusters",
    .word = {"PLACE..."},
    .words_least = 0,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_cluster_list,
};
