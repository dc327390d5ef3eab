/* What the commands of clusters share. */
#ifndef CLUSTER_VERB_H
#define CLUSTER_VERB_H

#include "cli.h"
#include "run/cluster/place.h"

typedef struct cli_cluster_settings {
    double patience; /* seconds for all requests of one kind to a provider */
    bool json;
} cli_cluster_settings;

extern const shoal_option *const cli_cluster_options; /* of cli_cluster_settings */

extern const cli_verb cli_cluster_up, cli_cluster_add, cli_cluster_remove, cli_cluster_down, cli_cluster_show,
    cli_cluster_list, cli_cluster_prices, cli_cluster_check;

/* Dollars as tables have them, "-" for NaN. */
void cli_format_dollars(char *out, size_t size, double dollars);

#endif
