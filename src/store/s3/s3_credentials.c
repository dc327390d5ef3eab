/* Who we are: keys from the first place in a chain that has some, renewed before they expire.
 *
 *     environment ─► profile in ~/.aws ─► container role ─► instance role
 *
 * Requests share the keys by counting their users, so that none has to wait for another that fetches new ones: while
 * the old ones last, they do. */
#include "s3_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/world.h"

enum {
    RENEW_BEFORE = 5 * 60, /* seconds before keys expire that new ones are asked for */
    RENEW_PAUSE = 10,      /* seconds between two such attempts */
    METADATA_SECONDS = 2,  /* what a machine without a metadata service may lose */
};

/* ---- keys -------------------------------------------------------------------------------------------------------- */

int s3_keys_new(s3_keys **out)
{
    int status = base_alloc(out, 1, sizeof **out, "credentials");
    if (status == SHOAL_OK)
        (*out)->users = 1;
    return status;
}

/* They go into headers: a space or a line's end in the middle shows that something was pasted wrongly. */
static bool is_clean(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
            return false;
    return true;
}

int s3_keys_set(s3_keys *keys, const char *id, size_t id_size, const char *secret, size_t secret_size,
                const char *token, size_t token_size)
{
    static const char version[] = "AWS4";
    size_t size = sizeof version - 1 + secret_size;
    char *key = NULL;
    if (!is_clean(id, id_size) || !is_clean(secret, secret_size) || !is_clean(token, token_size))
        return shoal_fail(SHOAL_INVALID, "an AWS key or token contains a space or an invalid character");
    int status = base_alloc(&key, size + 1, 1, "credentials");
    if (status < 0)
        return status;
    memcpy(key, version, sizeof version - 1);
    memcpy(key + sizeof version - 1, secret, secret_size);
    status = base_secret_set(&keys->signing, key, size);
    base_wipe(key, size);
    base_free(&key);
    if (status == SHOAL_OK)
        status = base_copy_text_n(&keys->id, id, id_size);
    if (status == SHOAL_OK && token_size > 0)
        status = base_secret_set(&keys->token, token, token_size);
    return status;
}

void s3_keys_free(s3_keys **keys)
{
    if (*keys && atomic_fetch_sub(&(*keys)->users, 1) == 1) {
        base_free(&(*keys)->id);
        base_secret_free(&(*keys)->signing);
        base_secret_free(&(*keys)->token);
        base_free(keys);
    }
    *keys = NULL;
}

/* ---- the places -------------------------------------------------------------------------------------------------- */

struct s3_chain {
    char *profile;    /* the name */
    bool is_explicit; /* somebody named it */
    bool before_environment;
    http_pool *pool; /* of the metadata services */

    pthread_mutex_t lock; /* of what follows */
    s3_keys *keys;
    int source; /* where they came from; -1 before the first */
    bool fetching;
    int64_t next_try;          /* on base_now's clock: not to ask a failing service for every request */
    _Atomic uint32_t attempts; /* so far; changes when one ends */
};

static int fetch_environment(s3_keys *out, s3_chain *chain, int64_t deadline)
{
    const char *id = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
    const char *token = getenv("AWS_SESSION_TOKEN");
    (void)deadline;
    id = id ? id : "";
    secret = secret ? secret : "";
    token = token ? token : "";
    if ((!*id && !*secret) || chain->before_environment)
        return shoal_fail(SHOAL_ABSENT, "AWS_ACCESS_KEY_ID is not set");
    if (!*id || !*secret)
        return shoal_fail(SHOAL_DENIED, "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set");
    return s3_keys_set(out, id, strlen(id), secret, strlen(secret), token, strlen(token));
}

static int fetch_profile(s3_keys *out, s3_chain *chain, int64_t deadline)
{
    s3_profile profile = {0};
    (void)deadline;
    int status = s3_profile_load(&profile, chain->profile);
    if (status == SHOAL_OK && profile.keys) { /* they are nobody else's yet */
        out->id = profile.keys->id;
        out->signing = profile.keys->signing;
        out->token = profile.keys->token;
        profile.keys->id = NULL;
        profile.keys->signing = profile.keys->token = NULL;
    } else if (status == SHOAL_OK && chain->is_explicit && !profile.found) {
        status =
            shoal_fail(SHOAL_USAGE, "there is no profile '%s' in ~/.aws/credentials or ~/.aws/config", chain->profile);
    } else if (status == SHOAL_OK && profile.unsupported[0]) {
        status = shoal_fail(
            SHOAL_DENIED,
            "profile '%s' gets its keys from %s, which is not supported; 'aws configure export-credentials --format "
            "env' prints keys that are",
            chain->profile, profile.unsupported);
    } else if (status == SHOAL_OK) {
        status = shoal_fail(SHOAL_ABSENT, "profile '%s' has no keys", chain->profile);
    }
    s3_profile_release(&profile);
    return status;
}

static int fetch_container(s3_keys *out, s3_chain *chain, int64_t deadline)
{
    return s3_metadata_container(out, chain->pool, deadline);
}

static int fetch_instance(s3_keys *out, s3_chain *chain, int64_t deadline)
{
    return s3_metadata_instance(out, chain->pool, deadline);
}

/* SHOAL_ABSENT: nothing there, ask the next. */
static int (*const sources[])(s3_keys *out, s3_chain *chain, int64_t deadline) = {fetch_environment, fetch_profile,
                                                                                  fetch_container, fetch_instance};
enum { SOURCES = sizeof sources / sizeof *sources };

/* Keys from `source`, or from the first place that has some when that is -1; then *source is set. */
static int fetch_keys(s3_keys **out, s3_chain *chain, int *source, int64_t deadline)
{
    int first = *source < 0 ? 0 : *source, last = *source < 0 ? SOURCES - 1 : *source;
    int64_t soon = base_time_after(base_now(), METADATA_SECONDS * 0.9);
    int status = SHOAL_ABSENT;
    deadline = deadline < soon ? deadline : soon;
    for (int i = first; i <= last && status == SHOAL_ABSENT; i++) {
        status = s3_keys_new(out);
        if (status == SHOAL_OK)
            status = sources[i](*out, chain, deadline);
        if (status == SHOAL_OK)
            *source = i;
        else
            s3_keys_free(out);
    }
    if (status == SHOAL_ABSENT && first == last)
        return shoal_fail(SHOAL_AGAIN, "can't get new credentials: %s", shoal_error());
    if (status == SHOAL_ABSENT)
        return shoal_fail(
            SHOAL_DENIED,
            "there are no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a "
            "profile in ~/.aws/credentials, or run where an instance or container has a role (%s)",
            shoal_error());
    return status;
}

/* ---- the chain --------------------------------------------------------------------------------------------------- */

int s3_chain_new(s3_chain **out, shoal_store *store, const char *name)
{
    const http_settings settings = {.attempt_seconds = 1, .connect_seconds = 1, .metadata = true};
    const char *variable = getenv("AWS_PROFILE");
    s3_chain *chain = NULL;
    int status = base_alloc(&chain, 1, sizeof *chain, "credentials");
    if (status < 0)
        return status;
    pthread_mutex_init(&chain->lock, NULL);
    chain->source = -1;
    chain->before_environment = name != NULL;
    name = name || !variable || !*variable ? name : variable;
    chain->is_explicit = name != NULL;
    status = base_copy_text(&chain->profile, name ? name : "default");
    if (status == SHOAL_OK)
        status = http_pool_new(&chain->pool, store, &settings);
    if (status < 0)
        s3_chain_free(&chain);
    *out = chain;
    return status;
}

void s3_chain_free(s3_chain **chain)
{
    if (!*chain)
        return;
    s3_keys_free(&(*chain)->keys);
    http_pool_free(&(*chain)->pool);
    base_free(&(*chain)->profile);
    pthread_mutex_destroy(&(*chain)->lock);
    base_free(chain);
}

/* Seconds that the keys are still good for. */
static int64_t lasts(const s3_keys *keys)
{
    return !keys ? 0 : keys->expires == 0 ? INT64_MAX : keys->expires - (int64_t)time(NULL);
}

/* Whether what there is will do: it lasts, or it is not yet time to ask again, or somebody does so already. */
static bool will_do(const s3_chain *chain)
{
    int64_t left = lasts(chain->keys);
    return left > RENEW_BEFORE || (left > 0 && (chain->fetching || base_now() < chain->next_try));
}

/* Fetches, without the lock meanwhile. */
static int renew(s3_chain *chain, int64_t deadline)
{
    s3_keys *fresh = NULL;
    int source = chain->source;
    chain->fetching = true;
    pthread_mutex_unlock(&chain->lock);
    int status = fetch_keys(&fresh, chain, &source, deadline);
    pthread_mutex_lock(&chain->lock);
    chain->fetching = false;
    chain->next_try = base_time_after(base_now(), chain->source < 0 ? 0 : RENEW_PAUSE);
    if (status == SHOAL_OK) {
        s3_keys_free(&chain->keys);
        chain->keys = fresh;
        chain->source = source;
    }
    atomic_fetch_add(&chain->attempts, 1);
    base_wake_word(&chain->attempts, INT_MAX);
    return status;
}

/* Waits until the fetching thread is done. */
static int wait_for_other(s3_chain *chain, int64_t deadline)
{
    uint32_t seen = atomic_load(&chain->attempts);
    pthread_mutex_unlock(&chain->lock);
    base_wait_word(&chain->attempts, seen, deadline);
    pthread_mutex_lock(&chain->lock);
    return base_now() < deadline ? SHOAL_OK : shoal_fail(SHOAL_AGAIN, "timed out waiting for credentials");
}

int s3_chain_get(s3_keys **out, s3_chain *chain, int64_t deadline)
{
    int status = SHOAL_OK;
    pthread_mutex_lock(&chain->lock);
    while (status == SHOAL_OK && !will_do(chain)) {
        if (chain->fetching) {
            status = wait_for_other(chain, deadline);
        } else {
            status = renew(chain, deadline);
            break;
        }
    }
    if (lasts(chain->keys) > 0) {
        status = SHOAL_OK; /* a renewal that failed has time until the old ones expire */
        *out = chain->keys;
        atomic_fetch_add(&chain->keys->users, 1);
    } else if (status == SHOAL_OK) {
        status = shoal_fail(SHOAL_DENIED, "the AWS credentials have expired, and there are no newer ones");
    }
    pthread_mutex_unlock(&chain->lock);
    return status;
}

bool s3_chain_renew(s3_chain *chain, const s3_keys *refused, int64_t deadline)
{
    pthread_mutex_lock(&chain->lock);
    if (chain->keys == refused && !chain->fetching && base_now() >= chain->next_try)
        (void)renew(chain, deadline);
    /* The same keys, read once more, are no better than they were. */
    bool other = chain->keys && chain->keys != refused && strcmp(chain->keys->id, refused->id) != 0;
    pthread_mutex_unlock(&chain->lock);
    return other;
}
