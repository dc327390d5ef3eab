/* What the program does before it opens a store.  See the header. */
#include "store_open.h"

#include <stddef.h>

#include "run/process.h"

static const shoal_option rows[] = {
    {"deadline", 0, SHOAL_OPTION_REAL, offsetof(cli_store_settings, patience), "SECONDS",
     .help = "how long to try one request again while the trouble may pass", .fallback = "60", .least = 0.001},
    {0},
};
const shoal_option *const cli_store_options = rows;

int cli_store_open(store_place *out, const char *url, const cli_store_settings *settings, shoal_store_options options)
{
    int status = run_protect_secrets(url);
    *out = (store_place){0};
    return status == SHOAL_OK ? store_place_open(out, url, settings->patience, options) : status;
}
