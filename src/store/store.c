/* The interface of stores: finds the implementation, checks keys, adds the prefix, and passes on to store_retry.c.
 * Also the small things that implementations share. */
#include "store_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"

static const struct store_class *const classes[] = {&store_memory, &store_folder, &store_s3, &store_azure, &store_pipe};

const shoal_etag shoal_etag_nothing = {""};

enum { PREFIX_MOST = 384, FULL_KEY = PREFIX_MOST + SHOAL_KEY_MOST + 2, LEASE_MOST = 7 * 24 * 3600, PAGE_MOST = 1000 };

/* ---- time -------------------------------------------------------------------------------------------------------- */

int64_t shoal_now(void)
{
    return base_now();
}

int64_t shoal_after(double seconds)
{
    return base_time_after(base_now(), seconds);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int find_class(const struct store_class **out, const store_url *url)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i]->scheme, url->scheme) == 0)
            return *out = classes[i], SHOAL_OK;
    return shoal_fail(
        SHOAL_USAGE,
        "%s: unknown kind of store '%s'; use dir:/path, az://ACCOUNT/CONTAINER, s3://BUCKET or mem:NAME (write a "
        "folder with a colon in its name as ./%s)",
        url->text, url->scheme, url->text);
}

int shoal_store_url_check(const char *url)
{
    store_url parsed = {0};
    const struct store_class *class = NULL;
    int status = store_url_parse(&parsed, url);
    if (status == SHOAL_OK)
        status = find_class(&class, &parsed);
    store_url_release(&parsed);
    return status;
}

/* The options that any store's URL may have after '?', besides its own. */
static int check_options(const struct store_class *class, const store_url *url)
{
    const char *known[16] = {"faults", "queue", "page"};
    size_t count = 3;
    for (const char *const *own = class->options; own && *own; own++)
        known[count++] = *own;
    const char *queue = store_url_option(url, "queue");
    if (queue && strcmp(queue, "blobs") != 0)
        return shoal_fail(SHOAL_USAGE, "%s: queue must be blobs, not '%s'", url->text, queue);
    const char *page = store_url_option(url, "page");
    if (page && (strlen(page) > 4 || page[strspn(page, "0123456789")] || atoi(page) < 1 || atoi(page) > PAGE_MOST))
        return shoal_fail(SHOAL_USAGE, "%s: page must be a number of keys from 1 to %d, not '%s'", url->text, PAGE_MOST,
                          page);
    return store_url_check_options(url, known);
}

static int open_once(shoal_store **out, char **rest, const struct store_class *class, const store_url *url,
                     const shoal_store_options *options, store_attempt *attempt)
{
    shoal_store *store = NULL;
    int status = base_alloc(&store, 1, class->size, "a store");
    if (status < 0)
        return status;
    store->class = class;
    store->blob_queue = !class->push || store_url_option(url, "queue");
    store->page_keys = store_url_option(url, "page") ? atoi(store_url_option(url, "page")) : PAGE_MOST;
    status = class->open(store, rest, url, options, attempt);
    if (status == SHOAL_OK)
        status = base_copy_text(&store->prefix, "");
    if (status < 0) {
        base_free(rest);
        shoal_store_close(&store);
    }
    *out = store;
    return status;
}

/* Opens, retrying while a server is unreachable. */
static int open_patiently(shoal_store **out, char **rest, const struct store_class *class, const store_url *url,
                          const shoal_store_options *options, int64_t deadline)
{
    shoal_store counts = {0}; /* counts failures before there is a store */
    store_attempt attempt = {.deadline = deadline};
    store_backoff backoff = {0};
    store_last_words words = {""};
    for (;;) {
        attempt.number++;
        attempt.retry_after = 0;
        int status = open_once(out, rest, class, url, options, &attempt);
        if (status != SHOAL_AGAIN && status != SHOAL_UNKNOWN)
            return status;
        store_last_words_note(&words, deadline);
        if (!store_backoff_sleep(&backoff, &counts, &attempt))
            return shoal_fail(SHOAL_AGAIN, "%s", words.text);
    }
}

int shoal_store_open_at(shoal_store **out, char **rest, const char *text, const shoal_store_options *options,
                        int64_t deadline)
{
    static const shoal_store_options none;
    const struct store_class *class = NULL;
    shoal_store *store = NULL;
    store_url url = {0};
    *out = NULL;
    *rest = NULL;
    int status = store_url_parse(&url, text);
    if (status == SHOAL_OK)
        status = find_class(&class, &url);
    if (status == SHOAL_OK)
        status = check_options(class, &url);
    if (status == SHOAL_OK)
        status = open_patiently(&store, rest, class, &url, options ? options : &none, deadline);
    if (status == SHOAL_OK && store_url_option(&url, "faults"))
        status = store_faulty_wrap(&store, store_url_option(&url, "faults"));
    store_url_release(&url);
    if (status < 0) {
        base_free(rest);
        shoal_store_close(&store);
    }
    *out = store;
    return status;
}

int shoal_store_open(shoal_store **out, const char *url, const shoal_store_options *options, int64_t deadline)
{
    shoal_store *store = NULL;
    char *rest = NULL, *prefix = NULL;
    int status = shoal_store_open_at(&store, &rest, url, options, deadline);
    if (status == SHOAL_OK && *rest) {
        status = store_key_check(rest);
        if (status == SHOAL_OK && strlen(rest) >= PREFIX_MOST)
            status = shoal_fail(SHOAL_USAGE, "%s: the prefix is longer than %d bytes", url, PREFIX_MOST - 1);
        if (status == SHOAL_OK)
            status = base_format(&prefix, "%s/", rest);
        if (status == SHOAL_OK) {
            base_free(&store->prefix);
            store->prefix = prefix;
        }
    }
    base_free(&rest);
    if (status < 0)
        shoal_store_close(&store);
    *out = store;
    return status;
}

void shoal_store_close(shoal_store **store)
{
    if (!*store)
        return;
    if ((*store)->class->close)
        (*store)->class->close(*store);
    base_free(&(*store)->name);
    base_free(&(*store)->prefix);
    base_free(store);
}

void shoal_text_free(char **text)
{
    base_free(text);
}

shoal_store_traits shoal_store_describe(const shoal_store *store)
{
    const struct store_class *class = store->class;
    return (shoal_store_traits){.scheme = class->scheme,
                                .name = store->name ? store->name : class->scheme,
                                .wakes = class->wakes,
                                .far = class->far,
                                .forgets = class->forgets};
}

void shoal_store_bound(shoal_store *store, int64_t bytes)
{
    store->most = bytes;
}

/* ---- keys with their prefix -------------------------------------------------------------------------------------- */

typedef struct full_key {
    char text[FULL_KEY];
} full_key;

static int add_prefix(full_key *out, const shoal_store *store, const char *key)
{
    int status = store_key_check(key);
    if (status == SHOAL_OK)
        snprintf(out->text, sizeof out->text, "%s%s", store->prefix, key);
    return status;
}

static int add_prefix_to_start(full_key *out, const shoal_store *store, const char *start)
{
    int status = store_prefix_check(start);
    if (status == SHOAL_OK)
        snprintf(out->text, sizeof out->text, "%s%s", store->prefix, start);
    return status;
}

int store_lend(char **url, shoal_store *store, const char *key, int64_t seconds, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, key);
    if (status == SHOAL_OK && !store->class->lend)
        status = shoal_fail(SHOAL_USAGE,
                            "%s: rented machines can't get this program from there; use s3://BUCKET, or a folder to "
                            "try it on this machine",
                            store->name);
    return status == SHOAL_OK ? store->class->lend(store, full.text, seconds, url, deadline) : status;
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

int shoal_store_get(shoal_store *store, const char *key, shoal_blob *out, int64_t deadline)
{
    const store_range all = {.length = -1};
    full_key full;
    int status = add_prefix(&full, store, key);
    return status == SHOAL_OK ? store_get(store, full.text, &all, out, deadline) : status;
}

int shoal_store_get_range(shoal_store *store, const char *key, int64_t offset, int64_t length,
                          const shoal_etag *expected, void *buffer, shoal_blob *out, int64_t deadline)
{
    const store_range range = {.offset = offset, .length = length, .expected = expected, .buffer = buffer};
    full_key full;
    int status = add_prefix(&full, store, key);
    if (status == SHOAL_OK && (offset < 0 || length < 0))
        status = store_fail(store, key, SHOAL_USAGE, "the offset and the length of a range can't be negative");
    return status == SHOAL_OK ? store_get(store, full.text, &range, out, deadline) : status;
}

int shoal_store_put(shoal_store *store, const char *key, const void *data, size_t size, const shoal_etag *expected,
                    shoal_etag *etag, int64_t deadline)
{
    const store_body body = {{{NULL, 0}, {(void *)data, size}}};
    shoal_etag ignored = {""};
    full_key full;
    int status = add_prefix(&full, store, key);
    if (status < 0)
        return status;
    return store_put(store, full.text, &body, NULL, expected, etag ? etag : &ignored, deadline);
}

int shoal_store_put_framed(shoal_store *store, const char *key, uint32_t kind, const void *data, size_t size,
                           const shoal_etag *expected, shoal_etag *etag, int64_t deadline)
{
    shoal_etag ignored = {""};
    full_key full;
    int status = add_prefix(&full, store, key);
    if (status < 0)
        return status;
    return store_put_framed(store, full.text, kind, data, size, expected, etag ? etag : &ignored, deadline);
}

int shoal_store_get_framed(shoal_store *store, const char *key, uint32_t kind, shoal_blob *out, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, key);
    return status == SHOAL_OK ? store_get_framed(store, full.text, kind, out, deadline) : status;
}

int shoal_store_get_framed_within(shoal_store *store, const char *key, uint32_t kind, int64_t most, shoal_blob *out,
                                  int64_t deadline)
{
    int64_t length = most < INT64_MAX - SHOAL_FRAME_BYTES ? most + SHOAL_FRAME_BYTES : INT64_MAX;
    const store_range start = {.length = store->most && store->most < length ? store->most : length};
    full_key full;
    int status = add_prefix(&full, store, key);
    if (status == SHOAL_OK)
        status = store_get(store, full.text, &start, out, deadline);
    if (status == SHOAL_OK && out->whole > start.length) {
        int64_t whole = out->whole;
        shoal_blob_release(out);
        out->whole = whole;
        return store_fail(store, full.text, SHOAL_MEMORY, "it has %lld bytes, more than the limit of %lld here",
                          (long long)whole, (long long)start.length);
    }
    return status == SHOAL_OK ? store_unframe(store, full.text, kind, out) : status;
}

int shoal_store_remove(shoal_store *store, const char *key, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, key);
    return status == SHOAL_OK ? store_remove(store, full.text, deadline) : status;
}

int shoal_store_discard(shoal_store *store, const char *key, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, key);
    if (status < 0)
        return status;
    return store->class->discard ? store->class->discard(store, full.text) : store_remove(store, full.text, deadline);
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

/* Removes the store's prefix from the keys of a page, and leaves out the store's internal keys. */
static void take_prefix_off(shoal_listing *page, const shoal_store *store)
{
    static const char own[] = ".shoal/";
    size_t length = strlen(store->prefix), kept = 0;
    for (size_t i = 0; i < page->count; i++) {
        shoal_entry *entry = &page->entries[i];
        bool below = strncmp(entry->key, store->prefix, length) == 0; /* or the server listed something else */
        if (below)
            memmove(entry->key, entry->key + length, strlen(entry->key + length) + 1);
        if (!below || strncmp(entry->key, own, sizeof own - 1) == 0)
            base_free(&entry->key);
        else
            page->entries[kept++] = *entry;
    }
    page->count = kept;
}

int shoal_store_list(shoal_store *store, const char *prefix, const char *after, shoal_listing *page, int64_t deadline)
{
    full_key full, full_after;
    int status = add_prefix_to_start(&full, store, prefix);
    if (status == SHOAL_OK && after)
        status = add_prefix_to_start(&full_after, store, after);
    if (status == SHOAL_OK)
        status = store_list(store, full.text, after ? full_after.text : NULL, page, deadline);
    if (status == SHOAL_OK)
        take_prefix_off(page, store);
    return status;
}

void shoal_listing_release(shoal_listing *page)
{
    for (size_t i = 0; i < page->count; i++)
        base_free(&page->entries[i].key);
    base_free(&page->entries);
    base_free(&page->marker);
    *page = (shoal_listing){0};
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* For stores that can't report changes: the first look at once, then after growing pauses. */
static int wait_by_polling(uint32_t *seen, int64_t deadline)
{
    static const double first = 0.02, growth = 1.5, most = 2;
    double pause = *seen == 0 ? 0 : first * pow(growth, fmin(*seen, 20));
    int64_t until = base_time_after(base_now(), fmin(pause, most));
    base_sleep_until(until < deadline ? until : deadline);
    if (until > deadline)
        return shoal_fail(SHOAL_AGAIN, "nothing changed in time");
    *seen += *seen < UINT32_MAX;
    return SHOAL_OK;
}

int shoal_store_wait(shoal_store *store, const char *name, uint32_t *seen, int64_t deadline)
{
    full_key full;
    int status = add_prefix_to_start(&full, store, name);
    if (status < 0)
        return status;
    return store->class->wakes ? store->class->wait(store, full.text, seen, deadline) : wait_by_polling(seen, deadline);
}

/* Looks, and looks again after every change that may be it, and once more at the end. */
static int await_by_looking(shoal_store *store, const char *key, int64_t until, shoal_blob *out, int64_t deadline)
{
    const store_range all = {.length = -1};
    int64_t began = base_now();
    uint32_t seen = 0;
    int status = SHOAL_ABSENT;
    for (bool over = false; status == SHOAL_ABSENT && !over;) {
        over = (store->class->wakes ? store->class->wait(store, key, &seen, until) : wait_by_polling(&seen, until)) < 0;
        status = store_get(store, key, &all, out, store_after_sleep(deadline, began));
    }
    return status;
}

static int await_blob(shoal_store *store, const char *key, int64_t until, shoal_blob *out, int64_t deadline)
{
    return (store->class->await ? store_await : await_by_looking)(store, key, until, out, deadline);
}

int shoal_store_await(shoal_store *store, const char *key, int64_t until, shoal_blob *out, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, key);
    return status == SHOAL_OK ? await_blob(store, full.text, until, out, deadline) : status;
}

int shoal_store_await_framed(shoal_store *store, const char *key, uint32_t kind, int64_t until, shoal_blob *out,
                             int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, key);
    if (status == SHOAL_OK)
        status = await_blob(store, full.text, until, out, deadline);
    return status == SHOAL_OK ? store_unframe(store, full.text, kind, out) : status;
}

void shoal_store_expect(shoal_store *store, const char *key)
{
    full_key full;
    if (store->class->expect && (!key || add_prefix(&full, store, key) == SHOAL_OK))
        store->class->expect(store, key ? full.text : NULL);
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static int check_lease(const shoal_store *store, const char *queue, double lease, double least)
{
    if (lease >= least && lease <= LEASE_MOST)
        return SHOAL_OK;
    return store_fail(store, queue, SHOAL_USAGE, "a lease must be %g to %d seconds, not %g", least, LEASE_MOST, lease);
}

/* A lease ends on the holder's own clock, whether or not another took the message meanwhile: so all stores behave
 * alike, whoever comes first. */
static int check_held(const shoal_store *store, const char *queue, const shoal_message *message)
{
    if (base_now() < message->lease_ends)
        return SHOAL_OK;
    return store_fail(store, queue, SHOAL_LOST, "the lease of the message has expired");
}

int shoal_store_push(shoal_store *store, const char *queue, const void *data, size_t size, int64_t deadline)
{
    const store_body body = {{{NULL, 0}, {(void *)data, size}}};
    full_key full;
    int status = add_prefix(&full, store, queue);
    if (status < 0)
        return status;
    return store->blob_queue ? store_blobs_push(store, full.text, data, size, deadline)
                             : store_queue_push(store, full.text, &body, deadline);
}

int shoal_store_take(shoal_store *store, const char *queue, double lease, shoal_message *out, int64_t deadline)
{
    full_key full;
    *out = (shoal_message){0};
    int status = add_prefix(&full, store, queue);
    if (status == SHOAL_OK)
        status = check_lease(store, queue, lease, 1);
    if (status < 0)
        return status;
    return store->blob_queue ? store_blobs_take(store, full.text, lease, out, deadline)
                             : store_queue_take(store, full.text, lease, out, deadline);
}

int shoal_store_extend(shoal_store *store, const char *queue, shoal_message *message, double lease, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, queue);
    if (status == SHOAL_OK)
        status = check_lease(store, queue, lease, 0);
    if (status == SHOAL_OK)
        status = check_held(store, full.text, message);
    if (status < 0)
        return status;
    return store->blob_queue ? store_blobs_extend(store, full.text, message, lease, deadline)
                             : store_queue_extend(store, full.text, message, lease, deadline);
}

int shoal_store_finish(shoal_store *store, const char *queue, shoal_message *message, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, queue);
    if (status == SHOAL_OK)
        status = check_held(store, full.text, message);
    if (status < 0)
        return status;
    return store->blob_queue ? store_blobs_finish(store, full.text, message, deadline)
                             : store_queue_finish(store, full.text, message, deadline);
}

int shoal_store_count(shoal_store *store, const char *queue, int64_t *out, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, queue);
    if (status < 0)
        return status;
    return store->blob_queue ? store_blobs_count(store, full.text, out, deadline)
                             : store_queue_count(store, full.text, out, deadline);
}

int shoal_store_drop(shoal_store *store, const char *queue, int64_t deadline)
{
    full_key full;
    int status = add_prefix(&full, store, queue);
    if (status < 0)
        return status;
    return store->blob_queue ? store_blobs_drop(store, full.text, deadline)
                             : store_queue_drop(store, full.text, deadline);
}

/* ---- what implementations share ---------------------------------------------------------------------------------- */

int store_fail(const shoal_store *self, const char *key, int status, const char *format, ...)
{
    char text[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *name = self->name ? self->name : self->class->scheme;
    return key && *key ? shoal_fail(status, "%s/%s: %s", name, key, text) : shoal_fail(status, "%s: %s", name, text);
}

int store_listing_add(shoal_listing *page, const char *key, size_t length, int64_t size, const char *etag)
{
    shoal_entry *entry;
    int status = SHOAL_OK;
    if (page->count == page->room) {
        size_t room = page->room ? 2 * page->room : 64;
        status = base_grow(&page->entries, page->room, room, sizeof *page->entries, "a listing");
        if (status == SHOAL_OK)
            page->room = room;
    }
    if (status < 0)
        return status;
    entry = &page->entries[page->count];
    *entry = (shoal_entry){.size = size, .age = -1};
    if (etag)
        status = store_etag_set(&entry->etag, etag, strlen(etag));
    if (status == SHOAL_OK)
        status = base_copy_text_n(&entry->key, key, length);
    page->count += status == SHOAL_OK;
    return status;
}

int store_listing_age(shoal_listing *page, int status, double age)
{
    if (status == SHOAL_OK)
        page->entries[page->count - 1].age = age > 0 ? age : age == -1 ? -1 : 0;
    return status;
}

int store_check_size(const shoal_store *self, const char *key, int64_t size)
{
    if (!self->most || size <= self->most)
        return SHOAL_OK;
    static const char words[] = "it has %lld bytes, more than the limit of %lld here";
    return key ? store_fail(self, key, SHOAL_MEMORY, words, (long long)size, (long long)self->most)
               : shoal_fail(SHOAL_MEMORY, words, (long long)size, (long long)self->most);
}

int store_blob_room(const shoal_store *self, const char *key, shoal_blob *out, size_t size)
{
    int status = store_check_size(self, key, (int64_t)size);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&out->memory, size, 1, "a blob");
    out->data = out->memory;
    out->size = status == SHOAL_OK ? size : 0;
    return status;
}

int store_message_room(const shoal_store *self, const char *queue, shoal_message *out, size_t size)
{
    int status = store_check_size(self, queue, (int64_t)size);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&out->data, size, 1, "a message");
    out->size = status == SHOAL_OK ? size : 0;
    return status;
}

int store_etag_set(shoal_etag *etag, const char *text, size_t length)
{
    if (length == 0 || length >= sizeof etag->text)
        return shoal_fail(SHOAL_INVALID, "the server sent an ETag of %zu characters, not of 1 to %zu", length,
                          sizeof etag->text - 1);
    *etag = (shoal_etag){""};
    memcpy(etag->text, text, length);
    return SHOAL_OK;
}

void shoal_blob_release(shoal_blob *blob)
{
    base_free(&blob->memory);
    *blob = (shoal_blob){.age = -1};
}

void shoal_message_release(shoal_message *message)
{
    base_free(&message->data);
    *message = (shoal_message){0};
}
