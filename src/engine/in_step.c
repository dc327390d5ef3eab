/* What ranks agree on.  See in_step.h. */
#include "engine/in_step.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/world.h"

enum { MESSAGE_BYTES = 1024 };

void engine_host(char out[ENGINE_HOST_BYTES])
{
    if (gethostname(out, ENGINE_HOST_BYTES) < 0)
        snprintf(out, ENGINE_HOST_BYTES, "an unnamed host");
    out[ENGINE_HOST_BYTES - 1] = '\0';
}

/* The first 63 bits of the SHA-256: never negative, and its negative fits too. */
static int64_t hash_of(const void *bytes, size_t size)
{
    unsigned char all[BASE_HASH_SIZE];
    base_hash hash = {0};
    uint64_t first;
    base_hash_add(&hash, bytes, size);
    base_hash_end(&hash, all);
    memcpy(&first, all, sizeof first);
    return (int64_t)(first >> 1);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

void engine_must(shoal_ranks *ranks, int status)
{
    if (status < 0)
        ranks->abort(ranks, shoal_error(), 1);
}

/* A failure as it is sent to the others. */
typedef struct failure {
    int32_t status;
    char host[ENGINE_HOST_BYTES];
    char message[MESSAGE_BYTES];
} failure;

/* A rank with a failure of its own takes precedence over one that was only told of a failure, and a lower rank over a
 * higher one. */
static int64_t precedence(const shoal_ranks *ranks, int status)
{
    if (status >= 0)
        return 0;
    return (status == SHOAL_STOPPED ? 0 : (int64_t)1 << 40) + ranks->size - ranks->rank;
}

/* Gives every rank the failure that takes precedence. */
static int tell_failure(shoal_ranks *ranks, int status, int64_t first)
{
    int64_t failed = status < 0;
    failure told = {.status = status};
    engine_host(told.host);
    if (failed)
        snprintf(told.message, sizeof told.message, "%s", shoal_error());
    int64_t words = failed ? hash_of(told.message, strlen(told.message)) : 0, range[2] = {words, -words};
    ranks->sum(ranks, &failed, &failed, 1);
    ranks->max(ranks, range, range, 2);
    int by = ranks->size - (int)(first & (((int64_t)1 << 40) - 1));
    ranks->share(ranks, &told, sizeof told, by);
    if (ranks->size == 1 || (failed == ranks->size && range[0] == -range[1]))
        return shoal_fail(told.status, "%s", told.message);
    return shoal_fail(told.status, "rank %d on %s: %s", by, told.host, told.message);
}

int engine_agree(shoal_ranks *ranks, int status)
{
    return engine_agree_on(ranks, status, 0, "");
}

int engine_agree_on(shoal_ranks *ranks, int status, uint32_t same, const char *what)
{
    int64_t all[] = {precedence(ranks, status), same, -(int64_t)same};
    ranks->max(ranks, all, all, 3);
    if (all[0] > 0)
        return tell_failure(ranks, status, all[0]);
    return all[1] == -all[2] ? SHOAL_OK : engine_compare(ranks, &same, sizeof same, what);
}

int engine_follow_first(shoal_ranks *ranks, int status)
{
    failure told = {.status = status};
    if (ranks->rank == 0 && status < 0)
        snprintf(told.message, sizeof told.message, "%s", shoal_error());
    ranks->share(ranks, &told.status, sizeof told.status, 0);
    if (told.status >= 0)
        return told.status;
    ranks->share(ranks, &told, sizeof told, 0);
    return shoal_fail(told.status, "%s", told.message);
}

/* ---- the same everywhere ----------------------------------------------------------------------------------------- */

static int count_equal(const int64_t *hash, int count, int of)
{
    int equal = 0;
    for (int i = 0; i < count; i++)
        equal += hash[i] == hash[of];
    return equal;
}

/* The first rank that differs from most; -1 if all agree. */
static int find_odd(const int64_t *hash, int count)
{
    int right = 0, most = count_equal(hash, count, 0);
    if (most == count)
        return -1;
    for (int i = 1; i < count; i++) {
        int equal = count_equal(hash, count, i);
        if (equal > most) {
            most = equal;
            right = i;
        }
    }
    int odd = 0;
    while (hash[odd] == hash[right])
        odd++;
    return odd;
}

int engine_compare(shoal_ranks *ranks, const void *bytes, size_t size, const char *what)
{
    int64_t mine = hash_of(bytes, size), range[2] = {mine, -mine};
    ranks->max(ranks, range, range, 2);
    if (range[0] == -range[1])
        return SHOAL_OK;
    int64_t *all = NULL;
    char host[ENGINE_HOST_BYTES];
    engine_must(ranks, base_alloc(&all, (size_t)ranks->size, sizeof *all, "the hashes of ranks"));
    ranks->gather(ranks, all, &mine, sizeof mine);
    int odd = find_odd(all, ranks->size);
    base_free(&all);
    engine_host(host);
    ranks->share(ranks, host, sizeof host, odd);
    return shoal_fail(SHOAL_CONFLICT, "rank %d on %s has another %s than %s", odd, host, what,
                      odd == 0          ? "the others"
                      : ranks->size > 2 ? "most others"
                                        : "rank 0");
}

/* ---- cores ------------------------------------------------------------------------------------------------------- */

typedef struct place {
    int64_t machine, host; /* hashes of the machine that has these cores, and of its name */
    int32_t asked, cores;  /* cores: as many as it may use at once */
    cpu_set_t may_use;
} place;

/* What identifies a machine even if several share a name or one has several; the host's name where the system does not
 * provide it. */
static int64_t machine_hash(const char *host)
{
    char boot[BASE_BOOT_ID_BYTES];
    const char *name = base_boot_id(boot) ? boot : host;
    return hash_of(name, strlen(name));
}

static place find_place(int asked)
{
    char host[ENGINE_HOST_BYTES];
    engine_host(host);
    place here = {
        .machine = machine_hash(host), .host = hash_of(host, strlen(host)), .asked = asked, .cores = base_cores()};
    if (sched_getaffinity(0, sizeof here.may_use, &here.may_use) < 0)
        CPU_ZERO(&here.may_use);
    return here;
}

/* A rank's share of all its cores together, if each core is divided equally among the ranks that may use it. */
static double cores_of(const place *all, int count, int rank)
{
    double share = 0;
    int here = 0;
    if (CPU_COUNT(&all[rank].may_use) == 0) { /* unknown: there are more cores than the set can hold */
        for (int i = 0; i < count; i++)
            here += all[i].machine == all[rank].machine;
        return (double)all[rank].cores / here;
    }
    for (int core = 0; core < CPU_SETSIZE; core++) {
        int users = 0;
        if (!CPU_ISSET(core, &all[rank].may_use))
            continue;
        for (int i = 0; i < count; i++)
            users += all[i].machine == all[rank].machine && CPU_ISSET(core, &all[i].may_use);
        share += 1.0 / users;
    }
    return share;
}

/* Cores that are left over among ranks with the same set go to the last of them. */
static int threads_of(const place *all, int count, int rank)
{
    if (all[rank].asked > 0)
        return all[rank].asked;
    int before = 0;
    for (int i = 0; i < rank; i++)
        before +=
            all[i].machine == all[rank].machine && memcmp(&all[i].may_use, &all[rank].may_use, sizeof(cpu_set_t)) == 0;
    double share = cores_of(all, count, rank) + 1e-9;
    int threads = (int)(floor(share * (before + 1)) - floor(share * before));
    threads = threads < all[rank].cores ? threads : all[rank].cores;
    return threads > 0 ? threads : 1;
}

static bool is_first_of_host(const place *all, int rank)
{
    for (int i = 0; i < rank; i++)
        if (all[i].host == all[rank].host)
            return false;
    return true;
}

int engine_share_cores(engine_shares *out, shoal_ranks *ranks, int asked)
{
    place mine = find_place(asked), *all = NULL;
    int64_t threads = 0;
    engine_must(ranks, base_alloc(&all, (size_t)ranks->size, sizeof *all, "the places of ranks"));
    ranks->gather(ranks, all, &mine, sizeof mine);
    *out = (engine_shares){.threads = threads_of(all, ranks->size, ranks->rank)};
    for (int i = 0; i < ranks->size; i++) {
        out->here += all[i].machine == mine.machine;
        out->hosts += is_first_of_host(all, i);
    }
    base_free(&all);
    int64_t *each = NULL;
    engine_must(ranks, base_alloc(&each, (size_t)ranks->size, sizeof *each, "the threads of ranks"));
    threads = out->threads;
    ranks->gather(ranks, each, &threads, sizeof threads);
    for (int i = 0; i < ranks->size; i++) {
        out->before += i < ranks->rank ? (int)each[i] : 0;
        out->all += (int)each[i];
    }
    base_free(&each);
    return SHOAL_OK;
}
