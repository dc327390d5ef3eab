/* See workers.h. */
#include "workers.h"

#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"

enum { COUNT_MOST = 10000 };

static int refuse_part(const char *part, size_t length)
{
    return shoal_fail(SHOAL_USAGE,
                      "--workers: '%.*s' is neither a number of workers, from 1 to %d, nor a range such as 1..100",
                      (int)length, part, PLAN_WORKERS_MOST);
}

/* Reads a number that ends at `end`. */
static bool read_count(int64_t *out, const char *text, const char *end)
{
    char number[32];
    size_t length = (size_t)(end - text);
    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    return base_parse_count(out, number) && *out >= 1 && *out <= PLAN_WORKERS_MOST;
}

static int add_part(plan_workers *out, const char *part, size_t length)
{
    const char *end = part + length, *dots = memmem(part, length, "..", 2);
    int64_t first = 0, last = 0;
    if (!read_count(&first, part, dots ? dots : end))
        return refuse_part(part, length);
    last = first;
    if (dots && (!read_count(&last, dots + 2, end) || last < first))
        return refuse_part(part, length);
    if (last - first >= COUNT_MOST - out->count)
        return shoal_fail(SHOAL_USAGE, "--workers: '%.*s' makes more than %d numbers of workers to compare",
                          (int)length, part, COUNT_MOST);
    for (int64_t i = first; i <= last; i++)
        out->number[out->count++] = i;
    return SHOAL_OK;
}

static int compare_counts(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_without_repeats(plan_workers *out)
{
    int64_t kept = 0;
    qsort(out->number, (size_t)out->count, sizeof *out->number, compare_counts);
    for (int64_t i = 0; i < out->count; i++)
        if (kept == 0 || out->number[i] != out->number[kept - 1])
            out->number[kept++] = out->number[i];
    out->count = kept;
}

int plan_workers_parse(plan_workers *out, const char *text)
{
    static const char prefix[] = "local:";
    *out = (plan_workers){.local = strncmp(text, prefix, strlen(prefix)) == 0};
    const char *part = out->local ? text + strlen(prefix) : text;
    int status = base_alloc(&out->number, COUNT_MOST, sizeof *out->number, "numbers of workers");
    while (status == SHOAL_OK) {
        size_t length = strcspn(part, ",");
        status = add_part(out, part, length);
        if (part[length] == '\0')
            break;
        part += length + 1;
    }
    if (status == SHOAL_OK)
        sort_without_repeats(out);
    else
        plan_workers_free(out);
    return status;
}

void plan_workers_free(plan_workers *workers)
{
    base_free(&workers->number);
    workers->count = 0;
}
