/* Machines of providers, for commands.  See place.h. */
#include "place.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>
#include <shoal/store.h>

#include "base/memory.h"
#include "plan/prices.h"

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static bool is_wanted(const cloud *place, const char *type)
{
    for (int i = 0; i < place->types; i++)
        if (fnmatch(place->type[i], type, 0) == 0)
            return true;
    return place->types == 0;
}

static const plan_machine *find_listed(const plan_prices *table, const cloud *place, const char *type)
{
    for (int64_t i = 0; i < table->machines; i++) {
        const plan_machine *machine = &table->machine[i];
        if (strcmp(machine->cloud, place->provider->scheme) == 0 && strcmp(machine->region, place->region) == 0 &&
            strcmp(machine->name, type) == 0)
            return machine;
    }
    return NULL;
}

static run_rate rate_of(const plan_machine *listed)
{
    run_rate rate = {.spot = NAN, .demand = NAN};
    if (listed) {
        snprintf(rate.type, sizeof rate.type, "%s", listed->name);
        snprintf(rate.zone, sizeof rate.zone, "%s", listed->region);
        rate.cores = listed->vcpus;
        rate.memory_gib = listed->memory_gib;
        rate.spot = listed->dollars_spot;
        rate.demand = listed->dollars_per_hour;
    }
    return rate;
}

static int fill_asked(run_rates *out, const cloud_prices *asked, const plan_prices *table, const cloud *place)
{
    int status = base_alloc(&out->rate, (size_t)asked->count + 1, sizeof *out->rate, "prices");
    for (int64_t i = 0; i < asked->count && status == SHOAL_OK; i++) {
        const cloud_price *price = &asked->price[i];
        run_rate *rate = &out->rate[out->count];
        if (!is_wanted(place, price->type)) /* it need not have understood the pattern */
            continue;
        *rate = rate_of(find_listed(table, place, price->type));
        snprintf(rate->type, sizeof rate->type, "%s", price->type);
        snprintf(rate->zone, sizeof rate->zone, "%s", price->zone);
        rate->spot = price->dollars;
        rate->asked = price->at;
        out->count++;
    }
    return status;
}

static int fill_listed(run_rates *out, const plan_prices *table, const cloud *place)
{
    int status = base_alloc(&out->rate, (size_t)table->machines + 1, sizeof *out->rate, "prices");
    for (int64_t i = 0; i < table->machines && status == SHOAL_OK; i++) {
        const plan_machine *machine = &table->machine[i];
        if (find_listed(table, place, machine->name) == machine && is_wanted(place, machine->name))
            out->rate[out->count++] = rate_of(machine);
    }
    return status;
}

/* Of a core where that is known; what is not known comes last. */
static double rank_of(const run_rate *rate)
{
    double dollars = isnan(rate->spot) ? rate->demand : rate->spot;
    return rate->cores > 0 ? dollars / rate->cores : 1e6 + dollars;
}

static int compare_rates(const void *a, const void *b)
{
    const run_rate *first = a, *second = b;
    double x = rank_of(first), y = rank_of(second);
    int order = strcmp(first->type, second->type);
    return x < y ? -1 : x > y ? 1 : order ? order : strcmp(first->zone, second->zone);
}

static int fail_no_rate(const cloud *place, const char *text, const plan_prices *table)
{
    bool known = false;
    for (int64_t i = 0; i < table->machines; i++)
        known |= strcmp(table->machine[i].cloud, place->provider->scheme) == 0 &&
                 strcmp(table->machine[i].region, place->region) == 0;
    return shoal_fail(SHOAL_USAGE, "%s: %s", text,
                      known ? "there is no such type of machine"
                            : "the table of this program does not have the region");
}

int run_rates_get(run_rates *out, const char *text, double patience)
{
    cloud *place = NULL;
    cloud_prices asked = {0};
    plan_prices *table = NULL;
    *out = (run_rates){0};
    int status = cloud_open(&place, text);
    if (status == SHOAL_OK)
        status = plan_prices_shipped(&table);
    if (status < 0)
        goto done;
    snprintf(out->date, sizeof out->date, "%s", table->date);
    status = cloud_price_now(&asked, place, shoal_after(patience));
    if (status < 0)
        status = base_copy_text(&out->why, shoal_error());
    if (status == SHOAL_OK)
        status = out->why ? fill_listed(out, table, place) : fill_asked(out, &asked, table, place);
    if (status == SHOAL_OK && out->count == 0)
        status = out->why ? shoal_fail(SHOAL_DENIED, "%s", out->why) : fail_no_rate(place, text, table);
    if (status == SHOAL_OK)
        qsort(out->rate, (size_t)out->count, sizeof *out->rate, compare_rates);
done:
    cloud_prices_release(&asked);
    plan_prices_free(&table);
    cloud_close(&place);
    if (status < 0)
        run_rates_release(out);
    return status;
}

void run_rates_release(run_rates *rates)
{
    base_free(&rates->rate);
    base_free(&rates->why);
    rates->count = 0;
}
