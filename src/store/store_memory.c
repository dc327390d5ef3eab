/* mem:NAME, a store in the memory of this process: the reference that the others are compared with, and what tests use.
 * Handles of one name share it, and it is gone when the last of them is closed; without a name each handle has its own.
 * One lock guards all of it and is never held while anything waits. */
#include "store_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"

typedef struct blob {
    char *key;
    void *data;
    size_t size;
    uint64_t etag; /* from a sequence, never used twice */
    int64_t written;
} blob;

typedef struct message {
    void *data;
    size_t size;
    uint64_t id;
    uint64_t receipt; /* of the last delivery */
    int64_t visible;  /* when it may be taken (again) */
    int64_t deliveries;
} message;

typedef struct queue {
    char *name;
    message *messages;
    size_t count;
} queue;

/* What the handles of one name share. */
typedef struct area {
    struct area *next;
    char *name;
    int handles;
    pthread_mutex_t lock;
    blob *blobs; /* sorted by key */
    size_t blob_count, blob_room;
    queue *queues;
    size_t queue_count;
    uint64_t sequence;
    store_wake wake;
} area;

typedef struct memory_store {
    shoal_store store;
    area *area;
} memory_store;

static area *areas;
static pthread_mutex_t areas_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void area_free(area *old)
{
    for (size_t i = 0; i < old->blob_count; i++) {
        base_free(&old->blobs[i].key);
        base_free(&old->blobs[i].data);
    }
    for (size_t i = 0; i < old->queue_count; i++) {
        for (size_t j = 0; j < old->queues[i].count; j++)
            base_free(&old->queues[i].messages[j].data);
        base_free(&old->queues[i].messages);
        base_free(&old->queues[i].name);
    }
    base_free(&old->blobs);
    base_free(&old->queues);
    base_free(&old->name);
    pthread_mutex_destroy(&old->lock);
    base_free(&old);
}

static int area_new(area **out, const char *name)
{
    area *fresh = NULL;
    int status = base_alloc(&fresh, 1, sizeof *fresh, "a store in memory");
    if (status < 0)
        return status;
    pthread_mutex_init(&fresh->lock, NULL);
    status = base_copy_text(&fresh->name, name);
    if (status < 0)
        area_free(fresh);
    else
        *out = fresh;
    return status;
}

/* Finds or makes the area of a name; the caller holds areas_lock. */
static int area_find(area **out, const char *name)
{
    for (area *each = areas; each && *name; each = each->next)
        if (strcmp(each->name, name) == 0)
            return *out = each, SHOAL_OK;
    int status = area_new(out, name);
    if (status == SHOAL_OK) {
        (*out)->next = areas;
        areas = *out;
    }
    return status;
}

static int open_memory(shoal_store *self, char **rest, const store_url *url, const shoal_store_options *options,
                       store_attempt *attempt)
{
    memory_store *memory = (memory_store *)self;
    size_t length = strcspn(url->rest, "/");
    char *name = NULL;
    (void)options;
    (void)attempt;
    int status = base_copy_text_n(&name, url->rest, length);
    if (status == SHOAL_OK)
        status = base_format(&self->name, "mem:%s", name);
    if (status == SHOAL_OK)
        status = base_copy_text(rest, url->rest + length + (url->rest[length] == '/'));
    if (status == SHOAL_OK) {
        pthread_mutex_lock(&areas_lock);
        status = area_find(&memory->area, name);
        if (status == SHOAL_OK)
            memory->area->handles++;
        pthread_mutex_unlock(&areas_lock);
    }
    base_free(&name);
    return status;
}

static void close_memory(shoal_store *self)
{
    area *own = ((memory_store *)self)->area;
    if (!own)
        return;
    pthread_mutex_lock(&areas_lock);
    if (--own->handles == 0) {
        area **link = &areas;
        while (*link != own)
            link = &(*link)->next;
        *link = own->next;
        area_free(own);
    }
    pthread_mutex_unlock(&areas_lock);
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

static area *enter_area(shoal_store *self)
{
    area *own = ((memory_store *)self)->area;
    pthread_mutex_lock(&own->lock);
    return own;
}

static void leave_area(area *own)
{
    pthread_mutex_unlock(&own->lock);
}

/* The place of the first blob whose key is not below `key`. */
static size_t place_of(const area *own, const char *key)
{
    size_t low = 0, high = own->blob_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(own->blobs[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static blob *find_blob(const area *own, const char *key)
{
    size_t at = place_of(own, key);
    return at < own->blob_count && strcmp(own->blobs[at].key, key) == 0 ? &own->blobs[at] : NULL;
}

static void write_etag(shoal_etag *out, uint64_t etag)
{
    *out = (shoal_etag){""};
    snprintf(out->text, sizeof out->text, "%" PRIu64, etag);
}

static bool is_version(const blob *found, const shoal_etag *expected)
{
    shoal_etag etag;
    if (!found)
        return expected->text[0] == '\0';
    write_etag(&etag, found->etag);
    return strcmp(etag.text, expected->text) == 0;
}

static int copy_out(shoal_blob *out, const shoal_store *self, const char *key, const blob *found,
                    const store_range *range)
{
    size_t start = range->offset < (int64_t)found->size ? (size_t)range->offset : found->size;
    size_t left = found->size - start;
    size_t size = range->length < 0 || range->length > (int64_t)left ? left : (size_t)range->length;
    int status = SHOAL_OK;
    if (range->buffer)
        out->size = size;
    else
        status = store_blob_room(self, key, out, size);
    if (status < 0)
        return status;
    memcpy(range->buffer ? range->buffer : out->data, (char *)found->data + start, size);
    out->whole = (int64_t)found->size;
    out->age = (double)(base_now() - found->written) * 1e-9;
    write_etag(&out->etag, found->etag);
    return SHOAL_OK;
}

static int get_memory(shoal_store *self, const char *key, const store_range *range, shoal_blob *out,
                      store_attempt *attempt)
{
    area *own = enter_area(self);
    const blob *found = find_blob(own, key);
    int status;
    (void)attempt;
    if (!found)
        status = store_fail(self, key, SHOAL_ABSENT, "there is no such key");
    else if (range->expected && !is_version(found, range->expected))
        status = store_fail(self, key, SHOAL_CONFLICT, "the stored version has changed");
    else
        status = copy_out(out, self, key, found, range);
    leave_area(own);
    return status;
}

static int copy_body(void **out, const store_body *body)
{
    int status = base_alloc_unset(out, store_body_size(body), 1, "a blob");
    char *next = status == SHOAL_OK ? *out : NULL;
    for (int i = 0; i < 2 && status == SHOAL_OK; i++) {
        if (body->part[i].iov_len > 0)
            memcpy(next, body->part[i].iov_base, body->part[i].iov_len);
        next += body->part[i].iov_len;
    }
    return status;
}

/* Makes room for a key that does not exist. */
static int insert_blob(blob **out, area *own, const char *key)
{
    size_t at = place_of(own, key);
    char *copy = NULL;
    int status = base_copy_text(&copy, key);
    if (status == SHOAL_OK && own->blob_count == own->blob_room) {
        size_t room = own->blob_room ? 2 * own->blob_room : 64;
        status = base_grow(&own->blobs, own->blob_room, room, sizeof *own->blobs, "a store in memory");
        if (status == SHOAL_OK)
            own->blob_room = room;
    }
    if (status < 0) {
        base_free(&copy);
        return status;
    }
    memmove(own->blobs + at + 1, own->blobs + at, (own->blob_count - at) * sizeof *own->blobs);
    own->blobs[at] = (blob){.key = copy};
    own->blob_count++;
    *out = &own->blobs[at];
    return SHOAL_OK;
}

static int put_memory(shoal_store *self, const char *key, const store_body *body, const shoal_etag *expected,
                      shoal_etag *etag, store_attempt *attempt)
{
    void *data = NULL;
    int status = copy_body(&data, body);
    (void)attempt;
    if (status < 0)
        return status;
    area *own = enter_area(self);
    blob *found = find_blob(own, key);
    if (expected && !is_version(found, expected))
        status = store_fail(self, key, SHOAL_CONFLICT, found ? "it exists, in another version" : "it does not exist");
    else if (!found)
        status = insert_blob(&found, own, key);
    if (status == SHOAL_OK) {
        base_free(&found->data);
        found->data = data;
        found->size = store_body_size(body);
        found->etag = ++own->sequence;
        found->written = base_now();
        write_etag(etag, found->etag);
        data = NULL;
        store_wake_changed(&own->wake, key);
    }
    leave_area(own);
    base_free(&data);
    return status;
}

static int remove_memory(shoal_store *self, const char *key, store_attempt *attempt)
{
    area *own = enter_area(self);
    size_t at = place_of(own, key);
    (void)attempt;
    if (find_blob(own, key)) {
        base_free(&own->blobs[at].key);
        base_free(&own->blobs[at].data);
        own->blob_count--;
        memmove(own->blobs + at, own->blobs + at + 1, (own->blob_count - at) * sizeof *own->blobs);
        store_wake_changed(&own->wake, key);
    }
    leave_area(own);
    return SHOAL_OK;
}

/* The first place whose key comes after all of these. */
static size_t list_start(const area *own, const char *prefix, const char *after, const char *marker)
{
    size_t at = place_of(own, prefix);
    const char *const behind[] = {after, marker};
    for (int i = 0; i < 2; i++) {
        size_t next = behind[i] ? place_of(own, behind[i]) : 0;
        if (behind[i] && next < own->blob_count && strcmp(own->blobs[next].key, behind[i]) == 0)
            next++;
        at = next > at ? next : at;
    }
    return at;
}

static int list_memory(shoal_store *self, const char *prefix, const char *after, shoal_listing *page,
                       store_attempt *attempt)
{
    size_t length = strlen(prefix);
    int status = SHOAL_OK;
    shoal_etag etag;
    (void)attempt;
    area *own = enter_area(self);
    size_t at = list_start(own, prefix, after, page->marker);
    base_free(&page->marker);
    for (; at < own->blob_count && status == SHOAL_OK; at++) {
        const blob *next = &own->blobs[at];
        if (strncmp(next->key, prefix, length) != 0)
            break;
        if (page->count == (size_t)self->page_keys) {
            page->more = true;
            status = base_copy_text(&page->marker, page->entries[page->count - 1].key);
            break;
        }
        write_etag(&etag, next->etag);
        status = store_listing_add(page, next->key, strlen(next->key), (int64_t)next->size, etag.text);
        status = store_listing_age(page, status, (double)(base_now() - next->written) * 1e-9);
    }
    leave_area(own);
    return status;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static queue *find_queue(const area *own, const char *name)
{
    for (size_t i = 0; i < own->queue_count; i++)
        if (strcmp(own->queues[i].name, name) == 0)
            return &own->queues[i];
    return NULL;
}

static int make_queue(queue **out, area *own, const char *name)
{
    int status = SHOAL_OK;
    if ((*out = find_queue(own, name)))
        return SHOAL_OK;
    status = base_grow(&own->queues, own->queue_count, own->queue_count + 1, sizeof *own->queues, "a queue");
    if (status == SHOAL_OK)
        status = base_copy_text(&own->queues[own->queue_count].name, name);
    if (status == SHOAL_OK)
        *out = &own->queues[own->queue_count++];
    return status;
}

static int push_memory(shoal_store *self, const char *name, const store_body *body, store_attempt *attempt)
{
    queue *found = NULL;
    void *data = NULL;
    int status = copy_body(&data, body);
    (void)attempt;
    if (status < 0)
        return status;
    area *own = enter_area(self);
    status = make_queue(&found, own, name);
    if (status == SHOAL_OK)
        status = base_grow(&found->messages, found->count, found->count + 1, sizeof *found->messages, "a queue");
    if (status == SHOAL_OK) {
        found->messages[found->count++] =
            (message){.data = data, .size = store_body_size(body), .id = ++own->sequence, .visible = base_now()};
        data = NULL;
        store_wake_changed(&own->wake, name);
    }
    leave_area(own);
    base_free(&data);
    return status;
}

static int take_memory(shoal_store *self, const char *name, double lease, shoal_message *out, store_attempt *attempt)
{
    area *own = enter_area(self);
    queue *found = find_queue(own, name);
    message *next = NULL;
    int64_t now = base_now();
    int status = SHOAL_OK;
    (void)attempt;
    for (size_t i = 0; found && i < found->count; i++)
        if (found->messages[i].visible <= now && (!next || found->messages[i].visible < next->visible))
            next = &found->messages[i];
    if (!next)
        status = store_fail(self, name, SHOAL_ABSENT, "no message is available");
    else
        status = store_message_room(self, name, out, next->size);
    if (status == SHOAL_OK) {
        memcpy(out->data, next->data, next->size);
        next->receipt = ++own->sequence;
        next->visible = base_time_after(now, lease);
        out->deliveries = ++next->deliveries;
        snprintf(out->receipt, sizeof out->receipt, "%" PRIu64 " %" PRIu64, next->id, next->receipt);
    }
    leave_area(own);
    return status;
}

/* The message a receipt is of; NULL when it is gone. *mine tells whether the receipt still holds it: once the lease has
 * expired it does not, whether or not another took it, so that the order of events does not matter. */
static message *find_message(bool *mine, const area *own, const char *name, const shoal_message *taken)
{
    queue *found = find_queue(own, name);
    uint64_t id = 0, receipt = 0;
    *mine = false;
    if (sscanf(taken->receipt, "%" SCNu64 " %" SCNu64, &id, &receipt) != 2)
        return NULL;
    for (size_t i = 0; found && i < found->count; i++) {
        message *each = &found->messages[i];
        *mine = each->id == id && each->receipt == receipt && each->visible > base_now();
        if (each->id == id)
            return each;
    }
    return NULL;
}

static int extend_memory(shoal_store *self, const char *name, shoal_message *taken, double lease,
                         store_attempt *attempt)
{
    area *own = enter_area(self);
    bool mine;
    message *found = find_message(&mine, own, name, taken);
    int status = SHOAL_OK;
    (void)attempt;
    if (!mine) {
        status = store_fail(self, name, SHOAL_LOST, "the lease of the message has expired");
    } else {
        found->visible = base_time_after(base_now(), lease);
        if (lease == 0)
            store_wake_changed(&own->wake, name);
    }
    leave_area(own);
    return status;
}

static int finish_memory(shoal_store *self, const char *name, shoal_message *taken, store_attempt *attempt)
{
    area *own = enter_area(self);
    bool mine;
    message *found = find_message(&mine, own, name, taken);
    int status = SHOAL_OK;
    if (mine) {
        queue *of = find_queue(own, name);
        base_free(&found->data);
        *found = of->messages[--of->count];
    } else if (found || !attempt->doubt) {
        status = store_fail(self, name, SHOAL_LOST, "the lease of the message has expired");
    }
    leave_area(own);
    return status;
}

static int count_memory(shoal_store *self, const char *name, int64_t *out, store_attempt *attempt)
{
    area *own = enter_area(self);
    const queue *found = find_queue(own, name);
    (void)attempt;
    *out = found ? (int64_t)found->count : 0;
    leave_area(own);
    return SHOAL_OK;
}

static int drop_memory(shoal_store *self, const char *name, store_attempt *attempt)
{
    area *own = enter_area(self);
    queue *found = find_queue(own, name);
    (void)attempt;
    if (found) {
        for (size_t i = 0; i < found->count; i++)
            base_free(&found->messages[i].data);
        base_free(&found->messages);
        base_free(&found->name);
        *found = own->queues[--own->queue_count];
        own->queues[own->queue_count] = (queue){0};
        store_wake_changed(&own->wake, name);
    }
    leave_area(own);
    return SHOAL_OK;
}

static int wait_memory(shoal_store *self, const char *name, uint32_t *seen, int64_t deadline)
{
    return store_wake_wait(&((memory_store *)self)->area->wake, name, seen, deadline);
}

const struct store_class store_memory = {
    .scheme = "mem",
    .size = sizeof(memory_store),
    .wakes = true,
    .open = open_memory,
    .close = close_memory,
    .get = get_memory,
    .put = put_memory,
    .remove = remove_memory,
    .list = list_memory,
    .push = push_memory,
    .take = take_memory,
    .extend = extend_memory,
    .finish = finish_memory,
    .count = count_memory,
    .drop = drop_memory,
    .wait = wait_memory,
};
