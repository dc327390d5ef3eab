/* The keys below a URL, in their order, a page at a time, so that a store of any size takes no more memory than one. */
#include "transfer.h"

#include <string.h>

#include "base/memory.h"
#include "store/store_place.h"
#include "transfer_names.h"

typedef int visitor(void *context, const transfer_listed *listed);

static int list_key(const store_place *from, visitor *visit, void *context, bool *found)
{
    shoal_entry entry = {0};
    transfer_listed listed = {.entry = &entry, .starts = true};
    int status = *from->rest && !from->slash ? store_place_find(from, from->rest, &entry) : SHOAL_ABSENT;
    *found |= status == SHOAL_OK;
    if (status == SHOAL_OK) {
        listed.name = transfer_last(&listed.segment, entry.key);
        status = visit(context, &listed);
    }
    base_free(&entry.key);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

static int list_below(const store_place *from, visitor *visit, void *context, bool *found)
{
    const shoal_entry *entry = NULL;
    char *segment = NULL; /* that the key before starts with */
    store_keys keys;
    int status = store_keys_start_below(&keys, from);
    size_t skip = status == SHOAL_OK ? strlen(keys.prefix) : 0;
    while (status == SHOAL_OK && (status = store_keys_next(&keys, &entry)) == SHOAL_OK && entry) {
        transfer_listed listed = {.entry = entry, .name = entry->key + skip};
        listed.segment = strcspn(listed.name, "/");
        listed.segment += listed.name[listed.segment] == '/';
        listed.starts =
            !segment || strlen(segment) != listed.segment || strncmp(listed.name, segment, listed.segment) != 0;
        if (listed.starts) {
            base_free(&segment);
            status = base_copy_text_n(&segment, listed.name, listed.segment);
        }
        *found = true;
        if (status == SHOAL_OK)
            status = visit(context, &listed);
    }
    base_free(&segment);
    store_keys_stop(&keys);
    return status;
}

int transfer_list(const char *url, double patience, int (*visit)(void *context, const transfer_listed *listed),
                  void *context)
{
    bool found = false;
    store_place from;
    int status = store_place_open(&from, url, patience, (shoal_store_options){.read_only = true});
    if (status < 0)
        return status;
    status = list_key(&from, visit, context, &found);
    if (status == SHOAL_OK)
        status = list_below(&from, visit, context, &found);
    if (status == SHOAL_OK && !found && *from.rest)
        status = shoal_fail(SHOAL_ABSENT, "%s: there is no such key, and nothing below it", from.url);
    store_place_close(&from);
    return status;
}
