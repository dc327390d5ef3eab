/* Tables of prices from where they are kept: a file, or the program itself.  What the text means is
 * prices_parse.c's. */
#include "prices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "prices_internal.h"

/* All that three clouds rent in all their regions is a few megabytes; more is another kind of file. */
enum { SIZE_MOST = 16 << 20, SIZE_FIRST = 1 << 16 };

/* Not by its size, which a pipe has none of. */
static int read_all(char **out, size_t *length, FILE *file, const char *path)
{
    size_t room = 0;
    for (*length = 0;;) {
        if (*length == room) {
            size_t wider = room ? room * 2 : SIZE_FIRST;
            int status = base_grow(out, room, wider, 1, "a table of prices");
            if (status < 0)
                return status;
            room = wider;
        }
        size_t got = fread(*out + *length, 1, room - *length, file);
        *length += got;
        if (*length > SIZE_MOST)
            return shoal_fail(SHOAL_INVALID, "%s is larger than %d MiB, so it is no table of prices", path,
                              SIZE_MOST >> 20);
        if (got == 0)
            return ferror(file) ? shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be read", path) : SHOAL_OK;
    }
}

int plan_prices_read(plan_prices **out, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    *out = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be opened", path);
    int status = read_all(&text, &length, file, path);
    if (status == SHOAL_OK)
        status = plan_prices_parse(out, path, text, length);
    fclose(file);
    base_free(&text);
    return status;
}

int plan_prices_shipped(plan_prices **out)
{
    return plan_prices_parse(out, "the table of this program", plan_prices_table, strlen(plan_prices_table));
}

void plan_prices_free(plan_prices **prices)
{
    if (*prices) {
        base_free(&(*prices)->name);
        base_free(&(*prices)->machine);
    }
    base_free(prices);
}
