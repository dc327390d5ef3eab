/* Who is alive: a worker is, while the version of its record changes within every lease by this worker's own clock.
 * Nobody compares clocks.  See job_run.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_gang.h"
#include "engine/store/job_run.h"

void job_members_release(job_members *members)
{
    base_free(&members->peer);
    *members = (job_members){0};
}

/* Where the peer is, or would be: they lie in the order of their numbers, in which a listing brings them. */
static int64_t place_of(const job_members *members, uint64_t worker)
{
    int64_t low = 0, high = members->peers;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (members->peer[middle].worker < worker)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

job_peer *job_members_find(const job_members *members, uint64_t worker)
{
    int64_t place = place_of(members, worker);
    return place < members->peers && members->peer[place].worker == worker ? &members->peer[place] : NULL;
}

static int add_peer(job_peer **out, job_members *members, uint64_t worker)
{
    int64_t place = place_of(members, worker);
    if (members->peers == members->room) {
        int64_t room = members->room ? 2 * members->room : 16;
        int status = base_grow(&members->peer, (size_t)members->peers, (size_t)room, sizeof *members->peer, "workers");
        if (status < 0)
            return status;
        members->room = room;
    }
    *out = &members->peer[place];
    memmove(*out + 1, *out, (size_t)(members->peers++ - place) * sizeof **out);
    **out = (job_peer){.worker = worker, .turn = members->seen++};
    return SHOAL_OK;
}

/* More records than there can be workers: the rest are forged to waste time. */
enum { PEERS_MOST = 1 << 15 };

static int note_member(job_members *members, uint64_t worker, const shoal_etag *etag, int64_t now)
{
    job_peer *peer = job_members_find(members, worker);
    if (!peer && members->peers == PEERS_MOST)
        return SHOAL_OK;
    int status = peer ? SHOAL_OK : add_peer(&peer, members, worker);
    if (status < 0)
        return status;
    if (strcmp(peer->etag.text, etag->text) != 0) {
        peer->etag = *etag;
        peer->changed = now;
    }
    peer->listed = true;
    return SHOAL_OK;
}

/* Forgets those whose record is gone. */
static void drop_absent(job_members *members)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < members->peers; i++)
        if (members->peer[i].listed)
            members->peer[kept++] = members->peer[i];
    members->peers = kept;
}

int job_members_list(job_members *members, shoal_store *store, const char *id, int64_t deadline)
{
    job_key prefix = job_key_of(id, "worker/");
    shoal_listing page = {0};
    int64_t asked = base_now();
    int status;
    for (int64_t i = 0; i < members->peers; i++)
        members->peer[i].listed = false;
    do {
        status = shoal_store_list(store, prefix.text, NULL, &page, deadline);
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            uint64_t worker;
            if (job_key_read_worker(&worker, page.entries[i].key))
                status = note_member(members, worker, &page.entries[i].etag, asked);
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    if (status < 0)
        return status;
    drop_absent(members);
    members->listed_at = asked;
    return SHOAL_OK;
}

bool job_members_alive(const job_members *members, uint64_t worker, double lease)
{
    const job_peer *peer = job_members_find(members, worker);
    return peer && members->listed_at <= base_time_after(peer->changed, lease);
}

/* Several gets at once, for slow stores: if hundreds have joined, the leader reads the record of each. */
enum { READERS = 8 };

/* Reads a new worker's slots and roles from its record; one that vanished meanwhile is not a member. */
static int read_peer(void *context, int64_t i)
{
    job_run *run = context;
    job_peer *peer = &run->members.peer[i];
    job_record record;
    if (peer->known || !job_members_alive(&run->members, peer->worker, run->spec->lease))
        return SHOAL_OK;
    if (job_leaving(run))
        return shoal_fail(SHOAL_STOPPED, "told to leave");
    int status =
        job_record_get(&record, run->store, job_key_worker(run->spec->id, peer->worker).text, job_deadline(run));
    if (status == SHOAL_ABSENT || status == SHOAL_BROKEN)
        return SHOAL_OK;
    if (status == SHOAL_OK) {
        peer->slots = record.slots;
        peer->roles = record.roles;
        peer->known = true;
    }
    return status;
}

static int by_turn(const void *a, const void *b)
{
    const job_peer *one = *(job_peer *const *)a, *other = *(job_peer *const *)b;
    return (one->turn > other->turn) - (one->turn < other->turn);
}

/* Those who came first are first. */
int job_members_write(job_trailer *out, job_run *run)
{
    job_members *members = &run->members;
    const job_peer **peer = NULL;
    int threads = job_store_is_near(run->store) ? 1 : READERS;
    int64_t unread = 0;
    int status = base_alloc(&out->member, (size_t)members->peers + 1, sizeof *out->member, "members");
    out->members = 0;
    if (status == SHOAL_OK)
        status = base_alloc(&peer, (size_t)members->peers + 1, sizeof *peer, "members");
    for (int64_t i = 0; status == SHOAL_OK && i < members->peers; i++) {
        unread += !members->peer[i].known;
        peer[i] = &members->peer[i];
    }
    if (status == SHOAL_OK && unread > 0)
        status = job_gang_run(unread < threads ? (int)unread : threads, members->peers, read_peer, run);
    if (status == SHOAL_OK)
        qsort(peer, (size_t)members->peers, sizeof(job_peer *), by_turn);
    for (int64_t i = 0; status == SHOAL_OK && i < members->peers; i++)
        if (peer[i]->known && job_members_alive(members, peer[i]->worker, run->spec->lease))
            out->member[out->members++] = (job_member){peer[i]->worker, peer[i]->slots, peer[i]->roles};
    base_free(&peer);
    return status;
}

static int retire(job_run *run, uint64_t worker)
{
    job_record record;
    void *bytes = NULL;
    size_t size = 0;
    job_key key = job_key_worker(run->spec->id, worker), left = job_key_left(run->spec->id, worker);
    int status = job_record_get(&record, run->store, key.text, job_deadline(run));
    if (status == SHOAL_OK) {
        strcpy(record.state, "lost: fell silent");
        status = job_record_encode(&bytes, &size, &record);
    }
    if (status == SHOAL_OK)
        status =
            shoal_store_put_framed(run->store, left.text, JOB_KIND_WORKER, bytes, size, NULL, NULL, job_deadline(run));
    base_free(&bytes);
    if (status == SHOAL_OK || status == SHOAL_BROKEN)
        status = shoal_store_remove(run->store, key.text, job_deadline(run));
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

int job_members_retire(job_run *run)
{
    const job_members *members = &run->members;
    int status = SHOAL_OK;
    for (int64_t i = 0; status == SHOAL_OK && i < members->peers && !job_leaving(run); i++)
        if (!job_members_alive(members, members->peer[i].worker, 3 * run->spec->lease))
            status = retire(run, members->peer[i].worker);
    return status;
}
