/* Places where machines are rented: finding the provider, and what all of them share.  See cloud.h. */
#include "cloud.h"

#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/text.h"

static const cloud_provider *const providers[] = {&cloud_ec2};
enum { PROVIDERS = sizeof providers / sizeof *providers };

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

const char *cloud_state_name(cloud_state state)
{
    static const char *const names[] = {"pending", "running", "ending", "stopped", "ended"};
    return names[state];
}

const char *cloud_market_name(cloud_market market)
{
    return market == CLOUD_SPOT ? "spot" : "demand";
}

void cloud_copy_text(char *out, size_t room, const char *text, size_t length)
{
    snprintf(out, room, "%.*s", (int)(length < room ? length : room), text);
    base_text_clean(out);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* Makes room for one more. */
static int grow_list(void *list, int64_t count, size_t size, const char *what)
{
    size_t fresh = count < 8 ? 8 : (size_t)count * 2;
    if (count == 0)
        return base_alloc(list, fresh, size, what);
    bool full = count >= 8 && (count & (count - 1)) == 0; /* a power of two: so many there is room for */
    return full ? base_grow(list, (size_t)count, fresh, size, what) : SHOAL_OK;
}

int cloud_machines_add(cloud_machines *machines, const cloud_machine *machine)
{
    int status = grow_list(&machines->machine, machines->count, sizeof *machine, "machines");
    if (status == SHOAL_OK)
        machines->machine[machines->count++] = *machine;
    return status;
}

void cloud_machines_release(cloud_machines *machines)
{
    base_free(&machines->machine);
    machines->count = 0;
}

int cloud_prices_add(cloud_prices *prices, const cloud_price *price)
{
    int status = grow_list(&prices->price, prices->count, sizeof *price, "prices");
    if (status == SHOAL_OK)
        prices->price[prices->count++] = *price;
    return status;
}

void cloud_prices_release(cloud_prices *prices)
{
    base_free(&prices->price);
    prices->count = 0;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static int fail_place(const char *text, const char *why)
{
    return shoal_fail(SHOAL_USAGE, "'%s' should be aws:REGION or aws:REGION/TYPE,...: %s", text, why);
}

/* "c7i.large,c7i.*" */
static int split_types(cloud *self, const char *text, const char *types)
{
    for (const char *at = types;; at++) {
        size_t length = strcspn(at, ",");
        if (self->types == CLOUD_TYPES_MOST)
            return fail_place(text, "there are too many types");
        if (length == 0 || length >= CLOUD_NAME_BYTES)
            return fail_place(text, "a type is missing or too long");
        for (size_t i = 0; i < length; i++)
            if (!strchr(letters, at[i]) && at[i] != '*' && at[i] != '?')
                return fail_place(text, "a type has letters, digits, '-', '.' and '_'");
        snprintf(self->type[self->types++], CLOUD_NAME_BYTES, "%.*s", (int)length, at);
        at += length;
        if (!*at)
            return SHOAL_OK;
    }
}

static int read_place(cloud *self, const char *text, const char *rest)
{
    size_t length = strcspn(rest, "/");
    if (length >= sizeof self->region || strspn(rest, letters) < length)
        return fail_place(text, "a region has letters, digits and '-'");
    snprintf(self->region, sizeof self->region, "%.*s", (int)length, rest);
    return rest[length] == '/' ? split_types(self, text, rest + length + 1) : SHOAL_OK;
}

int cloud_open(cloud **out, const char *text)
{
    const cloud_provider *provider = NULL;
    cloud *self = NULL;
    size_t scheme = strcspn(text, ":");
    *out = NULL;
    for (int i = 0; i < PROVIDERS; i++)
        if (strlen(providers[i]->scheme) == scheme && strncmp(providers[i]->scheme, text, scheme) == 0)
            provider = providers[i];
    if (!provider)
        return fail_place(text, "there is no such provider");
    int status = base_alloc((void **)&self, 1, provider->size, "a place");
    if (status < 0)
        return status;
    self->provider = provider;
    status = read_place(self, text, text + scheme + (text[scheme] == ':'));
    if (status == SHOAL_OK)
        status = provider->open(self);
    if (status == SHOAL_OK)
        status = base_format(&self->name, "%s:%s", provider->scheme, self->region);
    if (status < 0)
        cloud_close(&self);
    *out = self;
    return status;
}

void cloud_close(cloud **place)
{
    if (!*place)
        return;
    (*place)->provider->close(*place);
    base_free(&(*place)->name);
    base_free(place);
}

int cloud_start(cloud_machine *out, cloud_refusal *why, cloud *place, const cloud_order *order, int64_t deadline)
{
    *why = CLOUD_REFUSED_OTHERWISE;
    return place->provider->start(place, out, why, order, deadline);
}

int cloud_list(cloud_machines *out, cloud *place, const char *cluster, int64_t deadline)
{
    return place->provider->list(place, out, cluster, deadline);
}

int cloud_end(cloud *place, const char *const *ids, int64_t count, int64_t deadline)
{
    return count > 0 ? place->provider->end(place, ids, count, deadline) : SHOAL_OK;
}

int cloud_price_now(cloud_prices *out, cloud *place, int64_t deadline)
{
    return place->provider->price(place, out, deadline);
}

int cloud_check(cloud_finding out[CLOUD_FINDINGS_MOST], int *count, cloud *place, int64_t deadline)
{
    *count = 0;
    return place->provider->check(place, out, count, deadline);
}
