/* Opening stores for the program: how long it is patient, and what keeps the keys it was given to itself. */
#ifndef CLI_STORE_OPEN_H
#define CLI_STORE_OPEN_H

#include <shoal/option.h>
#include <shoal/store.h>

#include "store/store_place.h"

typedef struct cli_store_settings {
    double patience; /* seconds that one request may take, all its attempts included */
} cli_store_settings;

extern const shoal_option *const cli_store_options; /* of cli_store_settings: --deadline */

/* run_protect_secrets, and store_place_open. */
int cli_store_open(store_place *out, const char *url, const cli_store_settings *settings, shoal_store_options options);

#endif
