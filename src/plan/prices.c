/* Tables of prices from where they are kept: a file, or the program itself.  What the text means is
 * prices_parse.c's. */
#include "prices.h"

#include <errno.h>
#include <string.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "prices_internal.h"

int plan_prices_read(plan_prices **out, const char *path)
{
    data_table table;
    *out = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be opened", path);
    int status = data_table_read(&table, path, file, "a table of prices");
    if (status == SHOAL_OK)
        status = plan_prices_from(out, &table);
    data_table_release(&table);
    fclose(file);
    return status;
}

int plan_prices_parse(plan_prices **out, const char *name, const char *text, size_t length)
{
    data_table table;
    *out = NULL;
    int status = data_table_init(&table, name, text, length);
    if (status == SHOAL_OK)
        status = plan_prices_from(out, &table);
    data_table_release(&table);
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
