/* Takes the place of the cloud stores in the portable programs: the real ones need libraries that a portable program
 * cannot count on.  Its workers still reach any store through the program that started them. */
#include "store/store_internal.h"

static int refuse(shoal_store *self, char **rest, const store_url *url, const shoal_store_options *options,
                  store_attempt *attempt)
{
    (void)self, (void)rest, (void)options, (void)attempt;
    return shoal_fail(
        SHOAL_USAGE, "%s: this is the portable build of shoal, which has no az:// or s3:// stores: use the usual build",
        url->text);
}

/* The options these URLs may have after '?': they must be known, so that the sentence above comes first. */
static const char *const s3_options[] = {"profile", "region", "style", NULL};

const struct store_class store_azure = {.scheme = "az", .size = sizeof(shoal_store), .open = refuse};
const struct store_class store_s3 = {
    .scheme = "s3", .size = sizeof(shoal_store), .options = s3_options, .open = refuse};
