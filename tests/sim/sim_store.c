/* The simulated store.  See sim_store.h.
 *
 * Blobs and messages are immutable and counted, so that a snapshot is a copy of two tables: what a store that forgets
 * goes back to. */
#include "sim_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/store_internal.h"

enum { SNAPSHOTS_A_SPAN = 8 };
static const double STALE_FOR = 0.5; /* seconds that something replaced may still be seen */

/* ---- what is there ----------------------------------------------------------------------------------------------- */

typedef struct content {
    int references;
    size_t size;
    unsigned char bytes[];
} content;

typedef struct version {
    content *content; /* NULL: it is not there */
    uint64_t etag;
    int64_t written;
} version;

typedef struct blob {
    char *key;
    version now, before; /* before: until now was written */
} blob;

typedef struct message {
    content *content;
    char *queue;
    uint64_t id, receipt;
    int64_t visible, deliveries;
} message;

typedef struct tables {
    int64_t time;
    blob *blobs; /* sorted by key; those that were removed stay, without content */
    size_t blob_count, blob_room;
    message *messages;
    size_t message_count, message_room;
} tables;

struct sim_cloud {
    sim_cloud_options options;
    tables tables;
    tables *snapshots; /* oldest first */
    size_t snapshot_count;
    uint64_t sequence;
    store_wake wake;
    int64_t cut_until, total_free;
    double tokens;
    int64_t tokens_time;
    bool calm;
    sim_traffic traffic;
    sim_moment *models;
    int64_t model_count;
};

typedef struct sim_store {
    shoal_store store;
    struct store_class class;
    sim_cloud *cloud;
    int64_t pipe_free; /* when the process's line is free again */
} sim_store;

static void *must(void *memory)
{
    if (!memory)
        sim_fail("the machine has no more memory");
    return memory;
}

static content *hold(content *held)
{
    if (held)
        held->references++;
    return held;
}

static void drop_content(content **held)
{
    if (*held && --(*held)->references == 0)
        free(*held);
    *held = NULL;
}

static content *content_of(const store_body *body)
{
    content *made = must(malloc(sizeof *made + store_body_size(body)));
    made->references = 1;
    made->size = 0;
    for (int i = 0; i < 2; i++) {
        if (body->part[i].iov_len > 0)
            memcpy(made->bytes + made->size, body->part[i].iov_base, body->part[i].iov_len);
        made->size += body->part[i].iov_len;
    }
    return made;
}

static void tables_release(tables *tables)
{
    for (size_t i = 0; i < tables->blob_count; i++) {
        drop_content(&tables->blobs[i].now.content);
        drop_content(&tables->blobs[i].before.content);
        free(tables->blobs[i].key);
    }
    for (size_t i = 0; i < tables->message_count; i++) {
        drop_content(&tables->messages[i].content);
        free(tables->messages[i].queue);
    }
    free(tables->blobs);
    free(tables->messages);
    memset(tables, 0, sizeof *tables);
}

static tables tables_copy(const tables *from)
{
    tables copy = *from;
    copy.blob_room = copy.blob_count;
    copy.message_room = copy.message_count;
    copy.blobs = must(malloc(copy.blob_count * sizeof *copy.blobs + 1));
    copy.messages = must(malloc(copy.message_count * sizeof *copy.messages + 1));
    for (size_t i = 0; i < copy.blob_count; i++) {
        copy.blobs[i] = from->blobs[i];
        copy.blobs[i].key = must(strdup(from->blobs[i].key));
        hold(copy.blobs[i].now.content);
        hold(copy.blobs[i].before.content);
    }
    for (size_t i = 0; i < copy.message_count; i++) {
        copy.messages[i] = from->messages[i];
        copy.messages[i].queue = must(strdup(from->messages[i].queue));
        hold(copy.messages[i].content);
    }
    return copy;
}

static size_t place_of(const tables *tables, const char *key)
{
    size_t low = 0, high = tables->blob_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(tables->blobs[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static blob *find(const tables *tables, const char *key)
{
    size_t at = place_of(tables, key);
    return at < tables->blob_count && strcmp(tables->blobs[at].key, key) == 0 ? &tables->blobs[at] : NULL;
}

static blob *find_or_make(tables *tables, const char *key)
{
    size_t at = place_of(tables, key);
    if (at < tables->blob_count && strcmp(tables->blobs[at].key, key) == 0)
        return &tables->blobs[at];
    if (tables->blob_count == tables->blob_room) {
        tables->blob_room = tables->blob_room ? 2 * tables->blob_room : 64;
        tables->blobs = must(realloc(tables->blobs, tables->blob_room * sizeof *tables->blobs));
    }
    memmove(tables->blobs + at + 1, tables->blobs + at, (tables->blob_count - at) * sizeof *tables->blobs);
    tables->blobs[at] = (blob){.key = must(strdup(key))};
    tables->blob_count++;
    return &tables->blobs[at];
}

/* Forgets keys that were removed so long ago that nobody can see them. */
static void sweep(tables *tables)
{
    size_t kept = 0;
    for (size_t i = 0; i < tables->blob_count; i++) {
        blob *each = &tables->blobs[i];
        if (!each->now.content && sim_time() > base_time_after(each->now.written, 2 * STALE_FOR)) {
            drop_content(&each->before.content);
            free(each->key);
        } else {
            tables->blobs[kept++] = *each;
        }
    }
    tables->blob_count = kept;
}

/* ---- the past ---------------------------------------------------------------------------------------------------- */

/* Called before every change. */
static void remember(sim_cloud *cloud)
{
    double span = cloud->options.forgets / SNAPSHOTS_A_SPAN;
    int64_t now = sim_time();
    if (cloud->options.forgets == 0)
        return;
    if (cloud->snapshot_count > 0 && now < base_time_after(cloud->snapshots[cloud->snapshot_count - 1].time, span))
        return;
    while (cloud->snapshot_count > 1 && now > base_time_after(cloud->snapshots[1].time, cloud->options.forgets)) {
        tables_release(&cloud->snapshots[0]);
        memmove(cloud->snapshots, cloud->snapshots + 1, --cloud->snapshot_count * sizeof *cloud->snapshots);
    }
    cloud->snapshots = must(realloc(cloud->snapshots, (cloud->snapshot_count + 1) * sizeof *cloud->snapshots));
    cloud->snapshots[cloud->snapshot_count] = tables_copy(&cloud->tables);
    cloud->snapshots[cloud->snapshot_count++].time = now;
}

/* Never forgets more than that: goes back to the first moment since then that it knows. */
void sim_cloud_forget(sim_cloud *cloud, double seconds)
{
    int64_t since = base_time_after(sim_time(), -seconds);
    size_t at = 0;
    while (at < cloud->snapshot_count && cloud->snapshots[at].time < since)
        at++;
    if (at == cloud->snapshot_count)
        return;
    sim_event("*** the store forgets the last %.3f seconds", (double)(sim_time() - cloud->snapshots[at].time) * 1e-9);
    tables_release(&cloud->tables);
    cloud->tables = tables_copy(&cloud->snapshots[at]);
    while (cloud->snapshot_count > at)
        tables_release(&cloud->snapshots[--cloud->snapshot_count]);
    for (size_t i = 0; i < STORE_WAKE_WORDS; i++) {
        atomic_fetch_add(&cloud->wake.word[i], 1);
        base_wake_word(&cloud->wake.word[i], INT_MAX);
    }
}

/* ---- what a request meets ---------------------------------------------------------------------------------------- */

typedef struct fate {
    double there, back; /* seconds of its way */
    bool fails, lost, twice, stale;
    bool pause_before, pause_after, death_before, death_after;
} fate;

typedef struct request {
    sim_store *store;
    const char *verb, *key;
    bool writes;
    store_attempt *attempt;
    fate fate;
} request;

static bool quiet(const sim_cloud *cloud)
{
    double now = sim_seconds(), until = cloud->options.quiet;
    return cloud->calm || now < cloud->options.loud || (until > 0 && now > until) ||
           sim_process_number(sim_self()) == 0;
}

static fate draw_fate(sim_cloud *cloud)
{
    const sim_cloud_options *options = &cloud->options;
    double latency = options->latency * (1 + options->jitter * (2 * sim_unit() - 1)), split = sim_unit();
    fate fate = {.there = latency * split, .back = latency * (1 - split)};
    if (quiet(cloud))
        return fate;
    fate.fails = sim_chance(options->before);
    fate.lost = sim_chance(options->after);
    fate.twice = sim_chance(options->duplicate);
    fate.stale = sim_chance(options->stale);
    if (sim_chance(options->slow))
        fate.there += 10 * sim_unit() * sim_unit();
    if (sim_chance(options->slow))
        fate.back += 10 * sim_unit() * sim_unit();
    if (cloud->traffic.pauses < options->pauses && sim_chance(options->pause)) {
        cloud->traffic.pauses++;
        fate.pause_before = sim_chance(0.5);
        fate.pause_after = !fate.pause_before;
    }
    if (cloud->traffic.deaths < options->deaths && sim_process_nature(sim_self())->mortal &&
        sim_chance(options->death)) {
        cloud->traffic.deaths++;
        fate.death_before = sim_chance(0.5);
        fate.death_after = !fate.death_before;
    }
    return fate;
}

static void pause_self(void)
{
    double seconds = sim_chance(0.3) ? 60 * (0.5 + sim_unit()) : 8 * sim_unit();
    sim_event("*** is stopped for %.1f seconds", seconds);
    sim_process_pause(sim_self(), seconds);
}

static void die(const char *when, const request *request)
{
    sim_event("*** dies %s %s %s", when, request->verb, request->key);
    sim_process_kill(sim_self());
}

/* Takes a token of the account; false when there is none. */
static bool may_ask(sim_cloud *cloud)
{
    const sim_cloud_options *options = &cloud->options;
    if (options->request_rate == 0)
        return true;
    cloud->tokens += (double)(sim_time() - cloud->tokens_time) * 1e-9 * options->request_rate;
    cloud->tokens = cloud->tokens < options->burst ? cloud->tokens : options->burst;
    cloud->tokens_time = sim_time();
    if (cloud->tokens < 1)
        return false;
    cloud->tokens--;
    return true;
}

static int refuse(const request *request, int status, shoal_cause cause)
{
    request->attempt->cause = cause;
    request->store->cloud->traffic.failed++;
    sim_event("%s %s: %s%s", request->verb, request->key, shoal_cause_name(cause),
              status == SHOAL_UNKNOWN ? ", in doubt" : "");
    return store_fail(&request->store->store, request->key, status, "%s, in a simulation", shoal_cause_name(cause));
}

static int in_doubt(const request *request)
{
    return request->writes ? SHOAL_UNKNOWN : SHOAL_AGAIN;
}

/* Sleeps, but not beyond the deadline of the attempt; false when that comes first. */
static bool travel(const request *request, double seconds)
{
    int64_t until = base_time_after(sim_time(), seconds), deadline = sim_time_of(request->attempt->deadline);
    if (seconds > 0)
        sim_sleep_until(until < deadline ? until : deadline);
    else
        sim_yield();
    return until <= deadline;
}

static double weigh(const sim_cloud *cloud, const char *key, size_t bytes)
{
    return cloud->options.weigh ? cloud->options.weigh(key, bytes) : (double)bytes;
}

/* The seconds that bytes take on the process's own line and on the one that all share. */
static double transfer(sim_store *self, const char *key, size_t bytes)
{
    sim_cloud *cloud = self->cloud;
    const sim_cloud_options *options = &cloud->options;
    double size = weigh(cloud, key, bytes);
    int64_t now = sim_time(), done = now;
    if (options->worker_rate > 0) {
        self->pipe_free = base_time_after(self->pipe_free > now ? self->pipe_free : now, size / options->worker_rate);
        done = self->pipe_free;
    }
    if (options->total_rate > 0) {
        cloud->total_free =
            base_time_after(cloud->total_free > now ? cloud->total_free : now, size / options->total_rate);
        done = cloud->total_free > done ? cloud->total_free : done;
    }
    return (double)(done - now) * 1e-9;
}

/* The way of a request to the store.  SHOAL_OK: it has arrived and is to be done now. */
static int arrive(request *out, shoal_store *store, const char *verb, const char *key, bool writes, size_t bytes,
                  store_attempt *attempt)
{
    sim_store *self = (sim_store *)store;
    sim_cloud *cloud = self->cloud;
    *out = (request){.store = self, .verb = verb, .key = key, .writes = writes, .attempt = attempt};
    out->fate = draw_fate(cloud);
    cloud->traffic.requests++;
    cloud->traffic.leases += writes && strstr(key, "/worker/") != NULL;
    cloud->traffic.lists += strcmp(verb, "list") == 0;
    if (out->fate.pause_before)
        pause_self();
    if (out->fate.death_before)
        die("before", out);
    if (!travel(out, out->fate.there + (bytes > 0 ? transfer(self, key, bytes) : 0)))
        return refuse(out, in_doubt(out), SHOAL_CAUSE_TIMEOUT); /* it never came there, which nobody knows */
    if (sim_time() < cloud->cut_until)
        return refuse(out, SHOAL_AGAIN, SHOAL_CAUSE_UNREACHABLE);
    if (!may_ask(cloud))
        return refuse(out, SHOAL_AGAIN, SHOAL_CAUSE_THROTTLED);
    if (out->fate.fails)
        return refuse(out, sim_chance(0.5) ? SHOAL_AGAIN : in_doubt(out), SHOAL_CAUSE_SERVER);
    sim_serve(true);
    return SHOAL_OK;
}

static const char *word_of(int status)
{
    switch (status) {
    case SHOAL_OK: return "ok";
    case SHOAL_ABSENT: return "absent";
    case SHOAL_CONFLICT: return "conflict";
    case SHOAL_LOST: return "lost";
    default: return "failed";
    }
}

/* The way back, with this many bytes. */
static int answer(const request *request, int status, size_t bytes)
{
    sim_serve(false);
    sim_event("%s %s: %s%s%s", request->verb, request->key, word_of(status), request->fate.stale ? " (stale)" : "",
              request->fate.lost ? " (answer lost)" : "");
    if (request->fate.death_after)
        die("after", request);
    if (!travel(request, request->fate.back + (bytes > 0 ? transfer(request->store, request->key, bytes) : 0)))
        return refuse(request, in_doubt(request), SHOAL_CAUSE_TIMEOUT);
    if (request->fate.pause_after)
        pause_self();
    if (request->fate.lost)
        return refuse(request, in_doubt(request), SHOAL_CAUSE_CUT);
    return status;
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

static void write_etag(shoal_etag *out, uint64_t etag)
{
    *out = (shoal_etag){""};
    snprintf(out->text, sizeof out->text, "%" PRIu64, etag);
}

static bool is_version(const version *seen, const shoal_etag *expected)
{
    shoal_etag etag = {""};
    if (seen->content)
        write_etag(&etag, seen->etag);
    return strcmp(etag.text, expected->text) == 0;
}

/* The version a reader sees: what is there now, or with bad luck what was there until a moment ago. */
static const version *visible(const blob *blob, bool stale)
{
    static const version nothing;
    if (!blob)
        return &nothing;
    bool recent = sim_time() < base_time_after(blob->now.written, STALE_FOR);
    return stale && recent ? &blob->before : &blob->now;
}

static int copy_out(shoal_blob *out, const shoal_store *store, const char *key, const version *seen,
                    const store_range *range)
{
    size_t whole = seen->content->size, start = range->offset < (int64_t)whole ? (size_t)range->offset : whole;
    size_t left = whole - start,
           size = range->length < 0 || range->length > (int64_t)left ? left : (size_t)range->length;
    int status = SHOAL_OK;
    if (range->buffer)
        out->size = size;
    else
        status = store_blob_room(store, key, out, size);
    if (status < 0)
        return status;
    if (size > 0)
        memcpy(range->buffer ? range->buffer : out->data, seen->content->bytes + start, size);
    out->whole = (int64_t)whole;
    out->age = (double)(sim_time() - seen->written) * 1e-9;
    write_etag(&out->etag, seen->etag);
    return SHOAL_OK;
}

static int get_sim(shoal_store *store, const char *key, const store_range *range, shoal_blob *out,
                   store_attempt *attempt)
{
    request request;
    int status = arrive(&request, store, "get", key, false, 0, attempt);
    if (status < 0)
        return status;
    const version *seen = visible(find(&request.store->cloud->tables, key), request.fate.stale);
    if (!seen->content)
        status = store_fail(store, key, SHOAL_ABSENT, "there is no such key");
    else if (range->expected && !is_version(seen, range->expected))
        status = store_fail(store, key, SHOAL_CONFLICT, "the stored version has changed");
    else
        status = copy_out(out, store, key, seen, range);
    status = answer(&request, status, out->size);
    if (status < 0)
        shoal_blob_release(out);
    return status;
}

static void change(sim_cloud *cloud, blob *blob, content *content)
{
    drop_content(&blob->before.content);
    blob->before = blob->now;
    blob->now = (version){.content = content, .etag = ++cloud->sequence, .written = sim_time()};
    store_wake_changed(&cloud->wake, blob->key);
}

static void note_model(sim_cloud *cloud, const char *key)
{
    size_t length = strlen(key);
    if (length < 6 || strcmp(key + length - 6, "/model") != 0)
        return;
    cloud->models = must(realloc(cloud->models, (size_t)(cloud->model_count + 1) * sizeof *cloud->models));
    cloud->models[cloud->model_count++] = (sim_moment){sim_seconds(), cloud->traffic.requests, cloud->traffic.leases};
}

/* What is made again when it is found to be broken may come to harm on its way. */
static void harm(const sim_cloud *cloud, const char *key, content *put)
{
    bool made = strstr(key, "/round/") || strstr(key, "/worker/") || strstr(key, "/left/");
    if (!made || put->size == 0 || cloud->calm || !sim_chance(cloud->options.damage))
        return;
    sim_event("*** damages %s", key);
    put->bytes[sim_draw(put->size)] ^= (unsigned char)(1 << sim_draw(8));
}

static int put_sim(shoal_store *store, const char *key, const store_body *body, const shoal_etag *expected,
                   shoal_etag *etag, store_attempt *attempt)
{
    static const version nothing;
    request request;
    int status = arrive(&request, store, "put", key, true, store_body_size(body), attempt);
    if (status < 0)
        return status;
    sim_cloud *cloud = request.store->cloud;
    const blob *found = find(&cloud->tables, key);
    if (expected && !is_version(found ? &found->now : &nothing, expected)) {
        status = store_fail(store, key, SHOAL_CONFLICT,
                            found && found->now.content ? "it exists, in another version" : "it does not exist");
    } else {
        remember(cloud);
        blob *place = find_or_make(&cloud->tables, key);
        content *put = content_of(body);
        cloud->traffic.sent += strstr(key, "/round/") ? weigh(cloud, key, put->size) : 0;
        harm(cloud, key, put);
        change(cloud, place, put);
        write_etag(etag, place->now.etag);
        note_model(cloud, key);
    }
    return answer(&request, status, 0);
}

static int remove_sim(shoal_store *store, const char *key, store_attempt *attempt)
{
    request request;
    int status = arrive(&request, store, "remove", key, true, 0, attempt);
    if (status < 0)
        return status;
    sim_cloud *cloud = request.store->cloud;
    blob *found = find(&cloud->tables, key);
    if (found && found->now.content) {
        remember(cloud);
        change(cloud, found, NULL);
    }
    if (sim_chance(0.05))
        sweep(&cloud->tables);
    return answer(&request, SHOAL_OK, 0);
}

static int list_sim(shoal_store *store, const char *prefix, const char *after, shoal_listing *page,
                    store_attempt *attempt)
{
    request request;
    char *marker = page->marker;
    page->marker = NULL;
    int status = arrive(&request, store, "list", prefix, false, 0, attempt);
    if (status < 0) {
        base_free(&marker);
        return status;
    }
    const tables *tables = &request.store->cloud->tables;
    for (size_t at = place_of(tables, prefix); at < tables->blob_count && status == SHOAL_OK; at++) {
        const blob *each = &tables->blobs[at];
        const version *seen = visible(each, request.fate.stale);
        shoal_etag etag;
        if (strncmp(each->key, prefix, strlen(prefix)) != 0)
            break;
        if (!seen->content || (after && strcmp(each->key, after) <= 0) || (marker && strcmp(each->key, marker) <= 0))
            continue;
        if (page->count == (size_t)store->page_keys) {
            page->more = true;
            status = base_copy_text(&page->marker, page->entries[page->count - 1].key);
            break;
        }
        write_etag(&etag, seen->etag);
        status = store_listing_add(page, each->key, strlen(each->key), (int64_t)seen->content->size, etag.text);
        status = store_listing_age(page, status, (double)(sim_time() - seen->written) * 1e-9);
    }
    base_free(&marker);
    return answer(&request, status, 0);
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static void add_message(sim_cloud *cloud, const char *queue, const store_body *body)
{
    tables *tables = &cloud->tables;
    if (tables->message_count == tables->message_room) {
        tables->message_room = tables->message_room ? 2 * tables->message_room : 64;
        tables->messages = must(realloc(tables->messages, tables->message_room * sizeof *tables->messages));
    }
    tables->messages[tables->message_count++] = (message){
        .content = content_of(body), .queue = must(strdup(queue)), .id = ++cloud->sequence, .visible = sim_time()};
    store_wake_changed(&cloud->wake, queue);
}

static void remove_message(tables *tables, size_t at)
{
    drop_content(&tables->messages[at].content);
    free(tables->messages[at].queue);
    tables->messages[at] = tables->messages[--tables->message_count];
}

static int push_sim(shoal_store *store, const char *queue, const store_body *body, store_attempt *attempt)
{
    request request;
    int status = arrive(&request, store, "push", queue, true, store_body_size(body), attempt);
    if (status < 0)
        return status;
    sim_cloud *cloud = request.store->cloud;
    remember(cloud);
    for (int i = 0; i < (request.fate.twice ? 2 : 1); i++)
        add_message(cloud, queue, body);
    return answer(&request, SHOAL_OK, 0);
}

static int take_sim(shoal_store *store, const char *queue, double lease, shoal_message *out, store_attempt *attempt)
{
    request request;
    int status = arrive(&request, store, "take", queue, true, 0, attempt);
    if (status < 0)
        return status;
    sim_cloud *cloud = request.store->cloud;
    tables *tables = &cloud->tables;
    message *next = NULL;
    remember(cloud);
    for (size_t i = 0; i < tables->message_count; i++) {
        message *each = &tables->messages[i];
        if (strcmp(each->queue, queue) == 0 && each->visible <= sim_time() && (!next || each->visible < next->visible))
            next = each;
    }
    if (!next)
        status = store_fail(store, queue, SHOAL_ABSENT, "no message is available");
    else
        status = store_message_room(store, queue, out, next->content->size);
    if (status == SHOAL_OK) {
        memcpy(out->data, next->content->bytes, next->content->size);
        next->receipt = ++cloud->sequence;
        next->visible = base_time_after(sim_time(), lease);
        out->deliveries = ++next->deliveries;
        snprintf(out->receipt, sizeof out->receipt, "%" PRIu64 " %" PRIu64, next->id, next->receipt);
    }
    status = answer(&request, status, out->size);
    if (status < 0)
        shoal_message_release(out);
    return status;
}

/* The message a receipt is of; NULL when it is gone. */
static message *find_message(bool *mine, const tables *tables, const char *queue, const shoal_message *taken)
{
    uint64_t id = 0, receipt = 0;
    *mine = false;
    if (sscanf(taken->receipt, "%" SCNu64 " %" SCNu64, &id, &receipt) != 2)
        return NULL;
    for (size_t i = 0; i < tables->message_count; i++) {
        message *each = &tables->messages[i];
        if (each->id != id || strcmp(each->queue, queue) != 0)
            continue;
        *mine = each->receipt == receipt && each->visible > sim_time();
        return each;
    }
    return NULL;
}

static int extend_sim(shoal_store *store, const char *queue, shoal_message *taken, double lease, store_attempt *attempt)
{
    request request;
    bool mine;
    int status = arrive(&request, store, "extend", queue, true, 0, attempt);
    if (status < 0)
        return status;
    sim_cloud *cloud = request.store->cloud;
    message *found = find_message(&mine, &cloud->tables, queue, taken);
    if (!mine) {
        status = store_fail(store, queue, SHOAL_LOST, "the lease of the message has expired");
    } else {
        remember(cloud);
        found->visible = base_time_after(sim_time(), lease);
        if (lease == 0)
            store_wake_changed(&cloud->wake, queue);
    }
    return answer(&request, status, 0);
}

static int finish_sim(shoal_store *store, const char *queue, shoal_message *taken, store_attempt *attempt)
{
    request request;
    bool mine;
    int status = arrive(&request, store, "finish", queue, true, 0, attempt);
    if (status < 0)
        return status;
    sim_cloud *cloud = request.store->cloud;
    message *found = find_message(&mine, &cloud->tables, queue, taken);
    if (mine) {
        remember(cloud);
        remove_message(&cloud->tables, (size_t)(found - cloud->tables.messages));
    } else if (found || !attempt->doubt) {
        status = store_fail(store, queue, SHOAL_LOST, "the lease of the message has expired");
    }
    return answer(&request, status, 0);
}

static int count_sim(shoal_store *store, const char *queue, int64_t *out, store_attempt *attempt)
{
    request request;
    int status = arrive(&request, store, "count", queue, false, 0, attempt);
    if (status < 0)
        return status;
    const tables *tables = &request.store->cloud->tables;
    *out = 0;
    for (size_t i = 0; i < tables->message_count; i++)
        *out += strcmp(tables->messages[i].queue, queue) == 0;
    return answer(&request, SHOAL_OK, 0);
}

static int drop_sim(shoal_store *store, const char *queue, store_attempt *attempt)
{
    request request;
    int status = arrive(&request, store, "drop", queue, true, 0, attempt);
    if (status < 0)
        return status;
    tables *tables = &request.store->cloud->tables;
    remember(request.store->cloud);
    for (size_t i = tables->message_count; i-- > 0;)
        if (strcmp(tables->messages[i].queue, queue) == 0)
            remove_message(tables, i);
    return answer(&request, SHOAL_OK, 0);
}

static int wait_sim(shoal_store *store, const char *name, uint32_t *seen, int64_t deadline)
{
    return store_wake_wait(&((sim_store *)store)->cloud->wake, name, seen, deadline);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

sim_cloud *sim_cloud_new(const sim_cloud_options *options)
{
    sim_cloud *cloud = must(calloc(1, sizeof *cloud));
    cloud->options = *options;
    cloud->tokens = options->burst;
    cloud->tokens_time = sim_time();
    return cloud;
}

void sim_cloud_free(sim_cloud **cloud)
{
    if (!*cloud)
        return;
    tables_release(&(*cloud)->tables);
    for (size_t i = 0; i < (*cloud)->snapshot_count; i++)
        tables_release(&(*cloud)->snapshots[i]);
    free((*cloud)->snapshots);
    free((*cloud)->models);
    free(*cloud);
    *cloud = NULL;
}

static void close_sim(shoal_store *store)
{
    (void)store;
}

int sim_store_open(shoal_store **out, sim_cloud *cloud)
{
    sim_store *self = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "a simulated store");
    if (status == SHOAL_OK)
        status = base_copy_text(&self->store.name, "sim:");
    if (status == SHOAL_OK)
        status = base_copy_text(&self->store.prefix, "");
    if (status < 0)
        return status;
    self->cloud = cloud;
    self->class = (struct store_class){
        .scheme = "sim",
        .size = sizeof *self,
        .wakes = cloud->options.wakes,
        .far = cloud->options.far,
        .forgets = cloud->options.forgets,
        .close = close_sim,
        .get = get_sim,
        .put = put_sim,
        .remove = remove_sim,
        .list = list_sim,
        .push = push_sim,
        .take = take_sim,
        .extend = extend_sim,
        .finish = finish_sim,
        .count = count_sim,
        .drop = drop_sim,
        .wait = cloud->options.wakes ? wait_sim : NULL,
    };
    self->store.class = &self->class;
    self->store.blob_queue = cloud->options.blob_queue;
    self->store.page_keys = 1000;
    *out = &self->store;
    return SHOAL_OK;
}

void sim_cloud_cut(sim_cloud *cloud, double seconds)
{
    sim_event("*** the store is out of reach for %.1f seconds", seconds);
    cloud->cut_until = base_time_after(sim_time(), seconds);
}

void sim_cloud_calm(sim_cloud *cloud)
{
    cloud->calm = true;
}

/* ---- looking in from outside ------------------------------------------------------------------------------------- */

static bool matches(const blob *blob, const char *prefix, const char *text)
{
    return blob->now.content && strncmp(blob->key, prefix, strlen(prefix)) == 0 && (!text || strstr(blob->key, text));
}

int64_t sim_cloud_blobs(const sim_cloud *cloud, const char *prefix, const char *text)
{
    int64_t count = 0;
    for (size_t i = 0; i < cloud->tables.blob_count; i++)
        count += matches(&cloud->tables.blobs[i], prefix, text);
    return count;
}

const char *sim_cloud_next(const sim_cloud *cloud, const char *prefix, const char *after)
{
    for (size_t i = 0; i < cloud->tables.blob_count; i++)
        if (matches(&cloud->tables.blobs[i], prefix, NULL) && (!after || strcmp(cloud->tables.blobs[i].key, after) > 0))
            return cloud->tables.blobs[i].key;
    return NULL;
}

int64_t sim_cloud_remove(sim_cloud *cloud, const char *prefix, const char *text)
{
    int64_t count = 0;
    for (size_t i = 0; i < cloud->tables.blob_count; i++)
        if (matches(&cloud->tables.blobs[i], prefix, text)) {
            sim_event("*** loses %s", cloud->tables.blobs[i].key);
            change(cloud, &cloud->tables.blobs[i], NULL);
            count++;
        }
    return count;
}

bool sim_cloud_damage(sim_cloud *cloud, const char *prefix, const char *text)
{
    int64_t chosen = (int64_t)sim_draw((uint64_t)sim_cloud_blobs(cloud, prefix, text) + 1);
    for (size_t i = 0; i < cloud->tables.blob_count; i++) {
        blob *blob = &cloud->tables.blobs[i];
        if (!matches(blob, prefix, text) || blob->now.content->size == 0 || chosen-- > 0)
            continue;
        const content *whole = blob->now.content;
        content *damaged = must(malloc(sizeof *damaged + whole->size));
        *damaged = (content){.references = 1, .size = whole->size};
        memcpy(damaged->bytes, whole->bytes, whole->size);
        damaged->bytes[sim_draw(whole->size)] ^= (unsigned char)(1 << sim_draw(8));
        sim_event("*** damages %s", blob->key);
        change(cloud, blob, damaged);
        return true;
    }
    return false;
}

int64_t sim_cloud_messages(const sim_cloud *cloud)
{
    return (int64_t)cloud->tables.message_count;
}

sim_traffic sim_cloud_traffic(const sim_cloud *cloud)
{
    return cloud->traffic;
}

int64_t sim_cloud_models(const sim_cloud *cloud, const sim_moment **out)
{
    *out = cloud->models;
    return cloud->model_count;
}
