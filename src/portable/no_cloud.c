/* What stands in the portable programs where the stores of the cloud are: those need libraries that such a program must
 * not need.  Workers that run it reach any store through whoever started them. */
#include "store/store_internal.h"

static int refuse(shoal_store *self, char **rest, const store_url *url, const shoal_store_options *options,
                  store_attempt *attempt)
{
    (void)self, (void)rest, (void)options, (void)attempt;
    return shoal_fail(SHOAL_USAGE, "%s: this is the portable build of shoal, which has no az:// and no s3://",
                      url->text);
}

/* What these URLs may have behind '?': the sentence above comes first. */
static const char *const s3_options[] = {"profile", "region", "style", NULL};

const struct store_class store_azure = {.scheme = "az", .size = sizeof(shoal_store), .open = refuse};
const struct store_class store_s3 = {
    .scheme = "s3", .size = sizeof(shoal_store), .options = s3_options, .open = refuse};
