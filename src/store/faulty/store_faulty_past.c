/* What a store was like a moment ago, as far as it was changed through one handle: the source of stale reads, and what
 * a store that forgets goes back to.
 *
 * Before a change is made, what it replaces is read and kept for some seconds.  Going back writes it again, so the
 * former content is there but under a new etag, unlike on a server that restarts from an older copy of its disk. */
#include "store_faulty.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"

void past_change_release(past_change *change)
{
    base_free(&change->name);
    shoal_blob_release(&change->former);
    *change = (past_change){0};
}

void past_release(past *past)
{
    for (size_t i = 0; i < past->count; i++)
        past_change_release(&past->changes[i]);
    base_free(&past->changes);
    past->count = past->room = 0;
}

static void drop_older(past *past, int64_t since)
{
    size_t old = 0;
    while (old < past->count && past->changes[old].time < since)
        past_change_release(&past->changes[old++]);
    past->count -= old;
    if (old > 0)
        memmove(past->changes, past->changes + old, past->count * sizeof *past->changes);
}

int past_add(past *past, past_change *change)
{
    int status = SHOAL_OK;
    change->time = base_now();
    drop_older(past, base_time_after(change->time, -past->seconds));
    if (past->count == past->room) {
        size_t room = past->room ? 2 * past->room : 64;
        status = base_grow(&past->changes, past->room, room, sizeof *past->changes, "a faulty store's past");
        if (status == SHOAL_OK)
            past->room = room;
    }
    if (status == SHOAL_OK) {
        past->changes[past->count++] = *change;
        *change = (past_change){0};
    }
    past_change_release(change);
    return status;
}

const past_change *past_since(const past *past, const char *key, int64_t since)
{
    for (size_t i = 0; i < past->count; i++) {
        const past_change *each = &past->changes[i];
        if (each->what == PAST_BLOB && each->time >= since && strcmp(each->name, key) == 0)
            return each;
    }
    return NULL;
}

/* ---- listings ---------------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const shoal_entry *)a)->key, ((const shoal_entry *)b)->key);
}

/* Takes off the page what was not there, and gives the rest the version it had. */
static void show_changed(const past *past, shoal_listing *page, int64_t since)
{
    size_t kept = 0;
    for (size_t i = 0; i < page->count; i++) {
        shoal_entry *entry = &page->entries[i];
        const past_change *change = past_since(past, entry->key, since);
        if (change && !change->was_there) {
            base_free(&entry->key);
            continue;
        }
        if (change) {
            entry->size = change->former.whole;
            entry->etag = change->former.etag;
        }
        page->entries[kept++] = *entry;
    }
    page->count = kept;
}

/* Adds what has been removed.  Only to the first page, because only the store knows where others begin. */
static int show_removed(const past *past, shoal_listing *page, const char *prefix, const char *after, int64_t since)
{
    int status = SHOAL_OK;
    size_t before = page->count;
    for (size_t i = 0; i < past->count && status == SHOAL_OK; i++) {
        const past_change *each = &past->changes[i];
        if (each->what != PAST_BLOB || each != past_since(past, each->name, since) || !each->was_there ||
            strncmp(each->name, prefix, strlen(prefix)) != 0 || (after && strcmp(each->name, after) <= 0))
            continue;
        bool there = false,
             beyond = page->more && (before == 0 || strcmp(each->name, page->entries[before - 1].key) > 0);
        for (size_t j = 0; j < before && !there; j++)
            there = strcmp(page->entries[j].key, each->name) == 0;
        if (there || beyond)
            continue;
        status = store_listing_add(page, each->name, strlen(each->name), each->former.whole, each->former.etag.text);
        status = store_listing_age(page, status, each->former.age);
    }
    if (page->count > before)
        qsort(page->entries, page->count, sizeof *page->entries, by_key);
    return status;
}

int past_show(const past *past, shoal_listing *page, const char *prefix, const char *after, bool first, int64_t since)
{
    int status = first ? show_removed(past, page, prefix, after, since) : SHOAL_OK;
    show_changed(past, page, since);
    return status;
}

/* ---- going back -------------------------------------------------------------------------------------------------- */

/* The wrapper calls the inner store with no one above that tries again: a few attempts, and what fails stays done. */
static store_attempt patient(void)
{
    return (store_attempt){.deadline = base_time_after(base_now(), 5), .number = 1};
}

/* *version is set to what is there afterwards. */
static int undo_blob(const past_change *change, shoal_store *store, shoal_etag *version)
{
    static const store_range nothing = {.length = 0};
    const store_body body = {{{NULL, 0}, {change->former.data, change->former.size}}};
    store_attempt attempt = patient();
    shoal_blob now = {.age = -1};
    if (change->was_there)
        return store->class->put(store, change->name, &body, &change->version, version, &attempt);
    int status = store->class->get(store, change->name, &nothing, &now, &attempt);
    if (status == SHOAL_OK && strcmp(now.etag.text, change->version.text) == 0)
        status = store->class->remove(store, change->name, &attempt);
    shoal_blob_release(&now);
    return status;
}

static bool is_message(const shoal_message *message, const shoal_blob *body)
{
    return message->size == body->size && (body->size == 0 || memcmp(message->data, body->data, body->size) == 0);
}

/* A queue has no way to remove one message but to take it: those before it are taken too, and given back.  One that is
 * held by someone stays. */
static int undo_push(const past_change *change, shoal_store *store)
{
    enum { MOST = 4096, LEASE = 60 };
    store_attempt attempt = patient();
    shoal_message *taken = NULL;
    size_t count = 0;
    bool found = false;
    int status = base_alloc(&taken, MOST, sizeof *taken, "a queue's messages");
    while (status == SHOAL_OK && !found && count < MOST) {
        status = store->class->take(store, change->name, LEASE, &taken[count], &attempt);
        if (status < 0)
            break;
        found = is_message(&taken[count], &change->former);
        if (found)
            store->class->finish(store, change->name, &taken[count], &attempt);
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count || !found)
            store->class->extend(store, change->name, &taken[i], 0, &attempt);
        shoal_message_release(&taken[i]);
    }
    base_free(&taken);
    return status;
}

static int undo_finish(const past_change *change, shoal_store *store)
{
    const store_body body = {{{NULL, 0}, {change->former.data, change->former.size}}};
    store_attempt attempt = patient();
    return store->class->push(store, change->name, &body, &attempt);
}

/* Failures of the store, unlike those of memory, do not count as failures of a store that fails on purpose. */
static int undo(const past_change *change, shoal_store *store, shoal_etag *version)
{
    int status = change->what == PAST_BLOB   ? undo_blob(change, store, version)
                 : change->what == PAST_PUSH ? undo_push(change, store)
                                             : undo_finish(change, store);
    return status == SHOAL_MEMORY ? status : SHOAL_OK;
}

static past_change *find_last(const past *past, const char *key)
{
    for (size_t i = past->count; i-- > 0;)
        if (past->changes[i].what == PAST_BLOB && strcmp(past->changes[i].name, key) == 0)
            return &past->changes[i];
    return NULL;
}

int past_undo(past *past, shoal_store *store, int64_t since)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && past->count > 0 && past->changes[past->count - 1].time >= since) {
        past_change *last = &past->changes[--past->count];
        shoal_etag version = {""};
        status = undo(last, store, &version);
        past_change *earlier = last->what == PAST_BLOB ? find_last(past, last->name) : NULL;
        if (earlier) /* what it wrote is there again, as another version */
            earlier->version = version;
        past_change_release(last);
    }
    return status;
}
