/* What EC2 answers, as XML.  See ec2.h.
 *
 * Nothing in a document is believed: an id goes into later requests and onto terminals, so it has only the letters that
 * ids have; other texts are cut and made printable; a number is a number in its range. */
#include "ec2.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "store/xml.h"

int64_t ec2_read_time(const char *text)
{
    struct tm parts = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    int64_t seconds = rest && (*rest == 'Z' || *rest == '.') ? (int64_t)timegm(&parts) : 0;
    return seconds > 0 ? seconds : 0;
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

typedef struct error_reading {
    char *code, *message;
} error_reading;

static int read_error_element(void *context, const char *path, const char *text, size_t length)
{
    error_reading *r = context;
    if (text && base_text_ends(path, "/Error/Code") && !*r->code)
        cloud_copy_text(r->code, CLOUD_NAME_BYTES, text, length);
    else if (text && base_text_ends(path, "/Error/Message") && !*r->message)
        cloud_copy_text(r->message, (size_t)2 * CLOUD_TEXT_BYTES, text, length);
    return SHOAL_OK;
}

void ec2_read_error(char code[CLOUD_NAME_BYTES], char message[2 * CLOUD_TEXT_BYTES], const char *text, size_t size)
{
    error_reading r = {code, message};
    *code = *message = '\0';
    if (text && size > 0)
        (void)xml_read(text, size, read_error_element, &r); /* without a document the status decides */
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

typedef struct machines_reading {
    cloud_machines *out;
    cloud_machine machine;
    char key[CLOUD_NAME_BYTES], value[CLOUD_NAME_BYTES];
    bool known_state;
    char **next;
} machines_reading;

static bool is_id(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return *text && !text[strspn(text, letters)];
}

static void keep_state(machines_reading *r, const char *text)
{
    static const struct {
        const char *name;
        cloud_state state;
    } states[] = {{"pending", CLOUD_PENDING},  {"running", CLOUD_RUNNING},  {"shutting-down", CLOUD_ENDING},
                  {"terminated", CLOUD_ENDED}, {"stopping", CLOUD_STOPPED}, {"stopped", CLOUD_STOPPED}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp(text, states[i].name) == 0) {
            r->machine.state = states[i].state;
            r->known_state = true;
        }
}

static void keep_tag(machines_reading *r)
{
    const struct {
        const char *key;
        char *to;
    } known[] = {{"shoal-cluster", r->machine.cluster},
                 {"shoal-ledger", r->machine.ledger},
                 {"shoal-reservation", r->machine.reservation}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(r->key, known[i].key) == 0)
            snprintf(known[i].to, CLOUD_NAME_BYTES, "%s", r->value);
    *r->key = *r->value = '\0';
}

/* "User initiated (2026-11-19 21:30:00 GMT)": when it got into its state; 0 where that is not said. */
static int64_t read_transition(const char *text)
{
    struct tm parts = {0};
    const char *at = strrchr(text, '('), *rest = at ? strptime(at + 1, "%Y-%m-%d %H:%M:%S", &parts) : NULL;
    int64_t seconds = rest && strncmp(rest, " GMT)", 5) == 0 ? (int64_t)timegm(&parts) : 0;
    return seconds > 0 ? seconds : 0;
}

/* A field of a machine: `path` is what follows its item. */
static void keep_field(machines_reading *r, const char *path, const char *text, size_t length)
{
    cloud_machine *machine = &r->machine;
    const struct {
        const char *path;
        char *to;
        size_t room;
    } texts[] = {{"instanceId", machine->id, sizeof machine->id},
                 {"instanceType", machine->type, sizeof machine->type},
                 {"placement/availabilityZone", machine->zone, sizeof machine->zone},
                 {"ipAddress", machine->address, sizeof machine->address},
                 {"stateReason/message", machine->reason, sizeof machine->reason},
                 {"tagSet/item/key", r->key, sizeof r->key},
                 {"tagSet/item/value", r->value, sizeof r->value}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(path, texts[i].path) == 0)
            cloud_copy_text(texts[i].to, texts[i].room, text, length);
    if (strcmp(path, "privateIpAddress") == 0 && !*machine->address)
        cloud_copy_text(machine->address, sizeof machine->address, text, length);
    else if (strcmp(path, "instanceState/name") == 0)
        keep_state(r, text);
    else if (strcmp(path, "instanceLifecycle") == 0 && strcmp(text, "spot") == 0)
        machine->market = CLOUD_SPOT;
    else if (strcmp(path, "launchTime") == 0)
        machine->launched = ec2_read_time(text);
    else if (strcmp(path, "reason") == 0)
        machine->ended = read_transition(text);
}

static int end_machine(machines_reading *r)
{
    if (!is_id(r->machine.id) || !r->known_state)
        return shoal_fail(SHOAL_BROKEN, "EC2's answer has a machine without an id or with a state that is unknown");
    if (r->machine.state != CLOUD_ENDED)
        r->machine.ended = 0;
    return cloud_machines_add(r->out, &r->machine);
}

static void begin_machine(machines_reading *r)
{
    r->machine = (cloud_machine){.market = CLOUD_DEMAND};
    r->known_state = false;
}

static int read_machine_element(void *context, const char *path, const char *text, size_t length)
{
    static const char item[] = "/instancesSet/item";
    machines_reading *r = context;
    const char *found = strstr(path, item), *field = found ? found + sizeof item - 1 : NULL;
    int status = SHOAL_OK;
    if (text && base_text_ends(path, "Response/nextToken") && length > 0 && !*r->next)
        return base_copy_text_n(r->next, text, length);
    if (!field)
        return SHOAL_OK;
    if (text && *field == '/') {
        keep_field(r, field + 1, text, length);
    } else if (!text && strcmp(field, "/tagSet/item") == 0) {
        keep_tag(r);
    } else if (!*field) {
        status = end_machine(r);
        begin_machine(r);
    }
    return status;
}

int ec2_read_machines(cloud_machines *out, char **next, const char *text, size_t size)
{
    machines_reading r = {.out = out, .next = next};
    begin_machine(&r);
    return xml_read(text, size, read_machine_element, &r);
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

typedef struct prices_reading {
    cloud_prices *out;
    cloud_price price;
    char **next;
} prices_reading;

static double read_dollars(const char *text)
{
    char *end = NULL;
    double value = *text && !text[strspn(text, "0123456789.")] ? strtod(text, &end) : 0;
    return end && !*end && isfinite(value) && value < 1e6 ? value : 0;
}

/* The newest price of each pool is what it costs now; older ones are what it did. */
static int keep_newest(cloud_prices *out, const cloud_price *price)
{
    for (int64_t i = 0; i < out->count; i++)
        if (strcmp(out->price[i].type, price->type) == 0 && strcmp(out->price[i].zone, price->zone) == 0) {
            if (price->at > out->price[i].at)
                out->price[i] = *price;
            return SHOAL_OK;
        }
    return cloud_prices_add(out, price);
}

static int read_price_element(void *context, const char *path, const char *text, size_t length)
{
    static const char item[] = "/spotPriceHistorySet/item";
    prices_reading *r = context;
    cloud_price *price = &r->price;
    const char *found = strstr(path, item), *field = found ? found + sizeof item - 1 : NULL;
    int status = SHOAL_OK;
    if (text && base_text_ends(path, "Response/nextToken") && length > 0 && !*r->next)
        return base_copy_text_n(r->next, text, length);
    if (!field)
        return SHOAL_OK;
    if (text && strcmp(field, "/instanceType") == 0) {
        cloud_copy_text(price->type, sizeof price->type, text, length);
    } else if (text && strcmp(field, "/availabilityZone") == 0) {
        cloud_copy_text(price->zone, sizeof price->zone, text, length);
    } else if (text && strcmp(field, "/spotPrice") == 0) {
        price->dollars = read_dollars(text);
    } else if (text && strcmp(field, "/timestamp") == 0) {
        price->at = ec2_read_time(text);
    } else if (!*field) {
        if (!*price->type || !(price->dollars > 0))
            return shoal_fail(SHOAL_BROKEN, "EC2's answer has a price without a type, or that is not a number above 0");
        status = keep_newest(r->out, price);
        *price = (cloud_price){.market = CLOUD_SPOT};
    }
    return status;
}

int ec2_read_prices(cloud_prices *out, char **next, const char *text, size_t size)
{
    prices_reading r = {.out = out, .price = {.market = CLOUD_SPOT}, .next = next};
    return xml_read(text, size, read_price_element, &r);
}

/* ---- one element ------------------------------------------------------------------------------------------------- */

typedef struct element_reading {
    const char *path;
    char *out;
    size_t room;
    int64_t *count;
} element_reading;

static int read_named_element(void *context, const char *path, const char *text, size_t length)
{
    element_reading *r = context;
    if (text && base_text_ends(path, r->path) && (*r->count)++ == 0)
        cloud_copy_text(r->out, r->room, text, length);
    return SHOAL_OK;
}

int ec2_read_element(char *out, size_t room, int64_t *count, const char *path, const char *text, size_t size)
{
    element_reading r = {path, out, room, count};
    *count = 0;
    *out = '\0';
    return xml_read(text, size, read_named_element, &r);
}
