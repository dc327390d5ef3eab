/* shoal cluster check: whether machines can be started somewhere. */
#include "cluster_verb.h"

typedef struct settings {
    cli_common common;
    cli_cluster_settings cluster;
} settings;

static const base_option_group groups[] = {
    {"Check", &cli_cluster_options, offsetof(settings, cluster)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int show_finding(const cloud_finding *finding, bool json)
{
    json_t *object;
    if (!json) {
        printf("%-16s %-3s  ", finding->what, finding->good ? "yes" : "NO");
        cli_put_text(stdout, finding->text);
        putchar('\n');
        return SHOAL_OK;
    }
    object = json_object();
    base_json_put(&object, "what", base_json_text(finding->what));
    base_json_put(&object, "good", json_boolean(finding->good));
    base_json_put(&object, "text", base_json_text(finding->text));
    return cli_print_json(object);
}

static int run_cluster_check(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    cloud_finding findings[CLOUD_FINDINGS_MOST];
    cloud *place = NULL;
    int count = 0;
    bool good = true;
    (void)words;
    int status = cloud_open(&place, word[0]);
    if (status == SHOAL_OK)
        status = cloud_check(findings, &count, place, shoal_after(settings->cluster.patience));
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        good = good && findings[i].good;
        status = show_finding(&findings[i], settings->cluster.json);
    }
    cloud_close(&place);
    return status == SHOAL_OK && !good ? CLI_FAILED : status;
}

static const char *const description[] = {
    "Prints a line for each condition of starting machines in a region, and exits with 1 if one is not met: "
    "credentials that the provider knows, the region and its zones, subnets, each type that PLACE names, and "
    "whether the credentials permit starting machines, for which the provider is asked to try without doing it.",
    "Nothing is started and nothing is changed. Whether there is capacity, and enough quota, only a start tells.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal cluster check aws:eu-west-1/c7i.large", "can I start machines of that type there?"},
    {NULL, NULL},
};
const cli_verb cli_cluster_check = {
    .name = "cluster check",
    .summary = "check whether machines can be started",
    .word = {"PLACE"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_cluster_check,
};
