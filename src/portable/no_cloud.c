/* Takes the place of the cloud stores in the portable programs: the real ones need libraries that a portable program
 * cannot count on.  Its workers still reach any store through the program that started them. */
#include <string.h>

#include "launch/cloud/cloud.h"
#include "launch/cloud/notice.h"
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

/* A worker that is told by a file or a command still is. */
bool cloud_notice_is_known(const char *name)
{
    static const char *const names[] = {"auto", "aws", "azure", "gcp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

int cloud_notice_start(cloud_notice **out, const char *name, void (*say)(void *context, const char *line),
                       void *context)
{
    (void)out, (void)say, (void)context;
    return shoal_fail(SHOAL_USAGE,
                      "--notice %s: this is the portable build of shoal, which asks no cloud: use the usual build",
                      name);
}

const char *cloud_notice_given(const cloud_notice *self)
{
    (void)self;
    return NULL;
}

void cloud_notice_stop(cloud_notice **self)
{
    *self = NULL;
}

static int refuse_place(cloud *self)
{
    return shoal_fail(SHOAL_USAGE,
                      "%s: this is the portable build of shoal, which rents no machines: use the usual build",
                      self->provider->scheme);
}

static void close_nothing(cloud *self)
{
    (void)self;
}

const cloud_provider cloud_ec2 = {.scheme = "aws", .size = sizeof(cloud), .open = refuse_place, .close = close_nothing};
