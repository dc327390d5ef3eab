/* What a cluster was asked to be, as JSON in its store.  See cluster.h. */
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/mac.h"
#include "base/memory.h"
#include "base/text.h"
#include "cluster.h"

enum { VERSION = 1 };

/* The fields that are texts. */
typedef struct text_field {
    const char *name;
    size_t offset, room;
} text_field;

#define FIELD(field)                                                                                                   \
    {                                                                                                                  \
#field, offsetof(run_cluster_spec, field), sizeof((run_cluster_spec *)NULL)->field                             \
    }
static const text_field fields[] = {FIELD(name), FIELD(ledger), FIELD(by),     FIELD(machines), FIELD(image),
                                    FIELD(role), FIELD(key),    FIELD(subnet), FIELD(group),    FIELD(code)};
enum { FIELDS = sizeof fields / sizeof *fields };

int run_cluster_spec_write(char **out, const run_cluster_spec *spec)
{
    json_t *object = json_object();
    base_json_put(&object, "version", json_integer(VERSION));
    for (int i = 0; i < FIELDS; i++)
        base_json_put(&object, fields[i].name, base_json_text((const char *)spec + fields[i].offset));
    base_json_put(&object, "market", json_integer(spec->market));
    base_json_put(&object, "max_price", base_json_real(spec->max_price));
    base_json_put(&object, "idle", base_json_real(spec->idle));
    base_json_put(&object, "allowed", json_integer(spec->allowed));
    base_json_put(&object, "made", json_integer(spec->made));
    base_json_put(&object, "down", json_boolean(spec->down));
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    int status = text ? base_copy_text(out, text) : shoal_fail(SHOAL_MEMORY, "out of memory for a cluster");
    free(text);
    return status;
}

int run_cluster_spec_code(char out[RUN_CLUSTER_CODE_BYTES], const run_cluster_spec *spec,
                          const unsigned char secret[LEDGER_SECRET_BYTES])
{
    static const char purpose[] = "shoal cluster";
    unsigned char code[BASE_MAC_SIZE];
    run_cluster_spec covered = *spec;
    char *text = NULL;
    base_mac mac;
    covered.code[0] = '\0';
    covered.down = false;
    int status = run_cluster_spec_write(&text, &covered);
    if (status < 0)
        return status;
    base_mac_begin(&mac, secret, LEDGER_SECRET_BYTES);
    base_mac_add(&mac, purpose, sizeof purpose);
    base_mac_add(&mac, text, strlen(text));
    base_mac_end(&mac, code);
    base_hex_write(out, code, sizeof code);
    base_free(&text);
    return SHOAL_OK;
}

static bool take_texts(run_cluster_spec *out, const json_t *object)
{
    for (int i = 0; i < FIELDS; i++) {
        const char *text = json_string_value(json_object_get(object, fields[i].name));
        if (!text || strlen(text) >= fields[i].room || !base_text_is_clean(text))
            return false;
        snprintf((char *)out + fields[i].offset, fields[i].room, "%s", text);
    }
    return true;
}

static bool take_numbers(run_cluster_spec *out, const json_t *object)
{
    json_int_t market = json_integer_value(json_object_get(object, "market"));
    out->market = (run_cluster_market)market;
    out->max_price = json_number_value(json_object_get(object, "max_price"));
    out->idle = json_number_value(json_object_get(object, "idle"));
    out->allowed = json_integer_value(json_object_get(object, "allowed"));
    out->made = json_integer_value(json_object_get(object, "made"));
    out->down = json_is_true(json_object_get(object, "down"));
    return market >= 0 && market <= RUN_CLUSTER_MIXED && out->max_price >= 0 && out->max_price < 1e6 && out->idle > 0 &&
           out->idle < 1e9 && out->allowed > 0 && out->allowed < 1000000000 && out->made > 0;
}

int run_cluster_spec_read(run_cluster_spec *out, const char *name, const char *text, size_t size)
{
    json_t *object = json_loadb(text, size, 0, NULL);
    *out = (run_cluster_spec){0};
    bool known = json_integer_value(json_object_get(object, "version")) == VERSION;
    bool good = known && take_texts(out, object) && take_numbers(out, object) && strcmp(out->name, name) == 0 &&
                base_hex_is(out->ledger, RUN_CLUSTER_LEDGER_BYTES - 1); /* it names a file */
    json_decref(object);
    if (good)
        return SHOAL_OK;
    return shoal_fail(SHOAL_BROKEN, "clusters/%s/spec is not what this version of shoal writes there", name);
}
