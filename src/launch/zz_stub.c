/* Stand-ins until the launchers are there; weak, so that the real ones replace them. */
#include <shoal/error.h>

#include "launch/launch_internal.h"

static int none(launch_ask *out, const char *rest, const char *store_scheme, int64_t threads)
{
    (void)out;
    (void)store_scheme;
    (void)threads;
    return shoal_fail(SHOAL_USAGE, "--workers: '%s' is not there yet", rest);
}

__attribute__((weak)) const struct launcher launch_ssh = {.scheme = "ssh", .ask = none};
__attribute__((weak)) const struct launcher launch_slurm = {.scheme = "slurm", .ask = none};
