/* What the commands of clusters share.  See cluster_verb.h. */
#include "cluster_verb.h"

#include <math.h>

static const shoal_option rows[] = {
    {"deadline", 0, SHOAL_OPTION_REAL, offsetof(cli_cluster_settings, patience), "SECONDS",
     .help = "how long to wait for the provider, and to try again", .fallback = "60", .least = 0.001, .most = 86400},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(cli_cluster_settings, json), NULL,
     .help = "print one JSON object per line"},
    {0},
};
const shoal_option *const cli_cluster_options = rows;

const cli_verb *const cli_cluster_verbs[] = {&cli_cluster_up,     &cli_cluster_add,   &cli_cluster_remove,
                                             &cli_cluster_down,   &cli_cluster_show,  &cli_cluster_list,
                                             &cli_cluster_prices, &cli_cluster_check, NULL};

void cli_format_dollars(char *out, size_t size, double dollars)
{
    snprintf(out, size, isnan(dollars) ? "-" : "%.5f", dollars);
}
