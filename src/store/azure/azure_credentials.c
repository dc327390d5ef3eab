/* Credentials for Azure, from the environment, in this order:
 *
 *   AZURE_STORAGE_CONNECTION_STRING        key or signature, and endpoints
 *   AZURE_STORAGE_KEY                      of account AZURE_STORAGE_ACCOUNT, or of the one in the URL
 *   AZURE_STORAGE_SAS_TOKEN                a shared access signature
 *   IDENTITY_ENDPOINT and IDENTITY_HEADER  the identity of an App Service, a function or a container app
 *   AZURE_POD_IDENTITY_AUTHORITY_HOST      or else the metadata service of a virtual machine
 *
 * AZURE_CLIENT_ID chooses among identities.
 *
 * Secrets are kept as base_secret; what passes through other memory on the way is wiped. */
#include "azure_internal.h"

#include <jansson.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/memory.h"
#include "base/world.h"

/* The account and key that every emulator has; not a secret. */
static const char emulator_account[] = "devstoreaccount1";
static const char emulator_key[] =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

enum { REFRESH_PAUSE = 10 }; /* seconds until a service that gave no token is asked again, if the old one is valid */

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static int set_key(azure_credentials *out, const char *text, size_t length)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    int status = azure_unbase64(&bytes, &size, text, length);
    if (status == SHOAL_BROKEN || (status == SHOAL_OK && size == 0))
        status = shoal_fail(SHOAL_DENIED, "the Azure account key is not valid Base64");
    if (status == SHOAL_OK)
        status = base_secret_set(&out->key, (const char *)bytes, size);
    if (bytes)
        base_wipe(bytes, size);
    base_free(&bytes);
    return status;
}

static int set_sas(azure_credentials *out, const char *text, size_t length)
{
    if (length > 0 && *text == '?') {
        text++;
        length--;
    }
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
            return shoal_fail(SHOAL_DENIED, "the shared access signature contains spaces or control characters");
    if (!memmem(text, length, "sig=", 4))
        return shoal_fail(SHOAL_DENIED, "the shared access signature has no sig=... part");
    return base_secret_set(&out->sas, text, length);
}

/* Without the slashes at its end. */
static int set_endpoint(char **out, const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == '/')
        length--;
    if (memchr(text, '?', length) || !memmem(text, length, "://", 3))
        return shoal_fail(SHOAL_USAGE, "an Azure endpoint must be a URL such as https://account.blob.core.windows.net");
    base_free(out);
    return base_copy_text_n(out, text, length);
}

static int set_text(char **out, const char *text, size_t length)
{
    base_free(out);
    return base_copy_text_n(out, text, length);
}

/* Fills in the endpoints that were not given. */
static int default_endpoints(azure_credentials *out, const char *protocol, const char *suffix)
{
    int status = SHOAL_OK;
    if (!out->blob_endpoint)
        status = base_format(&out->blob_endpoint, "%s://%s.blob.%s", protocol, out->account, suffix);
    if (status == SHOAL_OK && !out->queue_endpoint)
        status = base_format(&out->queue_endpoint, "%s://%s.queue.%s", protocol, out->account, suffix);
    return status;
}

/* ---- connection strings ------------------------------------------------------------------------------------------ */

static int use_emulator(azure_credentials *out)
{
    int status = set_text(&out->account, emulator_account, strlen(emulator_account));
    if (status == SHOAL_OK)
        status = set_key(out, emulator_key, strlen(emulator_key));
    if (status == SHOAL_OK)
        status = base_format(&out->blob_endpoint, "http://127.0.0.1:10000/%s", emulator_account);
    return status == SHOAL_OK ? base_format(&out->queue_endpoint, "http://127.0.0.1:10001/%s", emulator_account)
                              : status;
}

/* One NAME=VALUE of a connection string; the value may have more '='. */
static int read_setting(azure_credentials *out, char **protocol, char **suffix, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length, size = equals ? length - name - 1 : 0;
    const char *value = equals ? equals + 1 : NULL;
    if (!equals) /* the text itself is not shown: it may be part of a key */
        return shoal_fail(SHOAL_DENIED, "a part of AZURE_STORAGE_CONNECTION_STRING is not name=value");
#define IS(word) (name == sizeof word - 1 && strncasecmp(text, word, name) == 0)
    if (IS("AccountName"))
        return set_text(&out->account, value, size);
    if (IS("AccountKey"))
        return set_key(out, value, size);
    if (IS("SharedAccessSignature"))
        return set_sas(out, value, size);
    if (IS("BlobEndpoint"))
        return set_endpoint(&out->blob_endpoint, value, size);
    if (IS("QueueEndpoint"))
        return set_endpoint(&out->queue_endpoint, value, size);
    if (IS("EndpointSuffix"))
        return set_text(suffix, value, size);
    if (IS("DefaultEndpointsProtocol"))
        return set_text(protocol, value, size);
    if (IS("UseDevelopmentStorage") && size == 4 && strncasecmp(value, "true", 4) == 0)
        return use_emulator(out);
#undef IS
    return SHOAL_OK; /* TableEndpoint and the like */
}

/* The account of https://ACCOUNT.blob.suffix or http://127.0.0.1:10000/ACCOUNT. */
static int account_of_endpoint(char **out, const char *endpoint)
{
    const char *host = strstr(endpoint, "://") + 3;
    const char *slash = strchr(host, '/');
    return slash && slash[1] ? base_copy_text_n(out, slash + 1, strcspn(slash + 1, "/"))
                             : base_copy_text_n(out, host, strcspn(host, ".:/"));
}

int azure_connection_string(azure_credentials *out, const char *text)
{
    char *protocol = NULL, *suffix = NULL;
    int status = SHOAL_OK;
    while (status == SHOAL_OK && *text) {
        size_t length = strcspn(text, ";");
        const char *part = text + strspn(text, " \t\n");
        if (part < text + length)
            status = read_setting(out, &protocol, &suffix, part, length - (size_t)(part - text));
        text += length;
        text += *text == ';';
    }
    if (status == SHOAL_OK && !out->account && out->blob_endpoint)
        status = account_of_endpoint(&out->account, out->blob_endpoint);
    if (status == SHOAL_OK && !out->account)
        status = shoal_fail(SHOAL_DENIED, "AZURE_STORAGE_CONNECTION_STRING has no AccountName");
    if (status == SHOAL_OK && !out->key && !out->sas)
        status = shoal_fail(SHOAL_DENIED,
                            "AZURE_STORAGE_CONNECTION_STRING has neither AccountKey nor SharedAccessSignature");
    if (status == SHOAL_OK)
        status = default_endpoints(out, protocol ? protocol : "https", suffix ? suffix : "core.windows.net");
    if (status == SHOAL_OK && out->key)
        base_secret_free(&out->sas); /* a key permits everything a signature does */
    base_free(&protocol);
    base_free(&suffix);
    return status;
}

/* ---- identities -------------------------------------------------------------------------------------------------- */

static int set_token_url(azure_credentials *out, const char *endpoint, const char *version)
{
    const char *client = environment("AZURE_CLIENT_ID");
    char *encoded = NULL;
    int status = client ? http_encode(&encoded, client, false) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = base_format(
            &out->identity.url, "%s%capi-version=%s&resource=https%%3A%%2F%%2Fstorage.azure.com%%2F%s%s", endpoint,
            strchr(endpoint, '?') ? '&' : '?', version, encoded ? "&client_id=" : "", encoded ? encoded : "");
    base_free(&encoded);
    return status;
}

/* "X-IDENTITY-HEADER: value", kept as the secret it is. */
static int set_identity_header(azure_credentials *out, const char *value)
{
    char *header = NULL;
    int status = base_format(&header, "X-IDENTITY-HEADER: %s", value);
    if (status < 0)
        return status;
    status = base_secret_set(&out->identity.header, header, strlen(header));
    base_wipe(header, strlen(header));
    base_free(&header);
    return status;
}

static int use_identity(azure_credentials *out)
{
    const char *endpoint = environment("IDENTITY_ENDPOINT"), *header = environment("IDENTITY_HEADER");
    const char *host = environment("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    char *service = NULL;
    int status;
    out->identity.used = true;
    if (endpoint && header) {
        status = set_token_url(out, endpoint, "2019-08-01");
        if (status == SHOAL_OK)
            status = set_identity_header(out, header);
    } else {
        out->identity.guessed = !host;
        host = host ? host : "http://169.254.169.254";
        size_t length = strlen(host);
        length -= length > 0 && host[length - 1] == '/';
        status = base_format(&service, "%.*s/metadata/identity/oauth2/token", (int)length, host);
        if (status == SHOAL_OK)
            status = set_token_url(out, service, "2018-02-01");
    }
    base_free(&service);
    if (status == SHOAL_OK)
        status = http_pool_new(&out->identity.pool, NULL,
                               &(http_settings){.metadata = true, .connect_seconds = 2, .attempt_seconds = 10});
    return status;
}

int azure_token_read(base_secret **token, double *seconds, const char *answer, size_t size, int64_t now)
{
    json_error_t error;
    json_t *root = json_loadb(answer, size, 0, &error);
    const char *text = json_string_value(json_object_get(root, "access_token"));
    json_t *relative = json_object_get(root, "expires_in"), *absolute = json_object_get(root, "expires_on");
    int status = SHOAL_OK;
    double left = 0;
    if (json_is_string(relative) || json_is_number(relative)) /* both are in use */
        left = json_is_string(relative) ? strtod(json_string_value(relative), NULL) : json_number_value(relative);
    else if (json_is_string(absolute) || json_is_number(absolute))
        left = (json_is_string(absolute) ? strtod(json_string_value(absolute), NULL) : json_number_value(absolute)) -
               (double)now;
    if (!text || !*text)
        status = shoal_fail(SHOAL_DENIED, "the identity service's answer has no access_token");
    else if (!(left > 0))
        status = shoal_fail(SHOAL_DENIED, "the identity service returned an expired token");
    else
        status = base_secret_set(token, text, strlen(text));
    *seconds = left > 0 ? left : 0;
    if (text)
        base_wipe((char *)text, strlen(text));
    json_decref(root);
    return status;
}

/* What an answer of the identity service other than a token means. */
static int judge_identity(const azure_credentials *who, const http_request *request, store_attempt *attempt)
{
    int passing = http_passing(request, attempt);
    bool first = who->identity.guessed && !who->identity.token;
    if (request->status == 200)
        return SHOAL_OK;
    if (first && (request->status == 0 || passing == SHOAL_OK))
        return shoal_fail(
            SHOAL_DENIED,
            "no Azure credentials: set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, "
            "or run on a machine with a managed identity (no identity service answers here)");
    if (request->status == 0)
        return shoal_fail(SHOAL_AGAIN, "the identity service of this machine does not answer: %s", request->trouble);
    if (passing < 0)
        return shoal_fail(SHOAL_AGAIN, "the identity service of this machine failed (HTTP status %d)", request->status);
    return shoal_fail(
        SHOAL_DENIED,
        "this machine has no identity that Azure issues tokens to (HTTP status %d from its identity service; "
        "AZURE_CLIENT_ID may have to name one)",
        request->status);
}

/* Asks for a token, without the lock meanwhile. */
static int refresh(azure_credentials *who, store_attempt *attempt)
{
    http_request request = {
        .method = "GET", .url = who->identity.url, .kind = SHOAL_REQUEST_OTHER, .room = HTTP_ERROR_MOST};
    int64_t asked = base_now();
    double seconds = 0;
    base_secret *token = NULL;
    who->identity.refreshing = true;
    pthread_mutex_unlock(&who->identity.lock);
    int status = who->identity.header ? http_add_header(&request, "%s", base_secret_text(who->identity.header))
                                      : http_add_header(&request, "Metadata: true");
    if (status == SHOAL_OK)
        status = http_perform(who->identity.pool, &request, 1, attempt->deadline);
    if (status == SHOAL_OK)
        status = judge_identity(who, &request, attempt);
    if (status == SHOAL_OK)
        status = azure_token_read(&token, &seconds, request.answer, request.size, (int64_t)time(NULL));
    pthread_mutex_lock(&who->identity.lock);
    who->identity.refreshing = false;
    who->identity.refresh_at = base_time_after(base_now(), REFRESH_PAUSE);
    if (status == SHOAL_OK) { /* renewed five minutes before its end, or half-way when it is short */
        base_secret_free(&who->identity.token);
        who->identity.token = token;
        who->identity.end = base_time_after(asked, seconds);
        who->identity.refresh_at = base_time_after(asked, seconds > 600 ? seconds - 300 : seconds / 2);
    }
    atomic_fetch_add(&who->identity.refreshes, 1);
    base_wake_word(&who->identity.refreshes, INT_MAX);
    if (request.answer)
        base_wipe(request.answer, request.size);
    http_request_release(&request);
    return status;
}

/* Whether there is a token that Azure still accepts. */
static bool is_good(const azure_credentials *who)
{
    return who->identity.token && base_now() < who->identity.end;
}

/* Waits until the thread that asks for a token is done. */
static int wait_for_other(azure_credentials *who, store_attempt *attempt)
{
    uint32_t seen = atomic_load(&who->identity.refreshes);
    pthread_mutex_unlock(&who->identity.lock);
    base_wait_word(&who->identity.refreshes, seen, attempt->deadline);
    pthread_mutex_lock(&who->identity.lock);
    if (base_now() < attempt->deadline)
        return SHOAL_OK;
    attempt->cause = SHOAL_CAUSE_TIMEOUT;
    return shoal_fail(SHOAL_AGAIN, "timed out waiting for a token");
}

/* Makes sure that there is a token.  While the old one is valid nobody waits for another thread that asks for a new
 * one, and a failing service is asked again only after a pause. */
static int have_token(azure_credentials *who, store_attempt *attempt)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && !is_good(who) && who->identity.refreshing)
        status = wait_for_other(who, attempt);
    bool due = !is_good(who) || base_now() >= who->identity.refresh_at;
    if (status == SHOAL_OK && due && !who->identity.refreshing)
        status = refresh(who, attempt);
    if (status < 0 && is_good(who)) { /* the old one is still valid for a while */
        attempt->cause = SHOAL_CAUSE_NONE;
        attempt->retry_after = 0;
        status = SHOAL_OK;
    }
    return status;
}

int azure_token_header(azure_credentials *who, base_secret **out, store_attempt *attempt)
{
    char *header = NULL;
    pthread_mutex_lock(&who->identity.lock);
    int status = have_token(who, attempt);
    if (status == SHOAL_OK)
        status = base_format(&header, "Authorization: Bearer %s", base_secret_text(who->identity.token));
    pthread_mutex_unlock(&who->identity.lock);
    if (status < 0)
        return status;
    status = base_secret_set(out, header, strlen(header));
    base_wipe(header, strlen(header));
    base_free(&header);
    return status;
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

static int from_variables(azure_credentials *out, const char *account)
{
    const char *named = environment("AZURE_STORAGE_ACCOUNT"), *key = environment("AZURE_STORAGE_KEY");
    const char *sas = environment("AZURE_STORAGE_SAS_TOKEN");
    const char *who = key || sas ? (named ? named : account) : account;
    int status = set_text(&out->account, who, strlen(who));
    if (status == SHOAL_OK && key)
        status = set_key(out, key, strlen(key));
    else if (status == SHOAL_OK && sas)
        status = set_sas(out, sas, strlen(sas));
    else if (status == SHOAL_OK)
        status = use_identity(out);
    return status;
}

/* Separate variables for endpoints override the connection string. */
static int custom_endpoints(azure_credentials *out)
{
    const char *blob = environment("AZURE_STORAGE_BLOB_ENDPOINT"), *queue = environment("AZURE_STORAGE_QUEUE_ENDPOINT");
    int status = blob ? set_endpoint(&out->blob_endpoint, blob, strlen(blob)) : SHOAL_OK;
    if (status == SHOAL_OK && queue)
        status = set_endpoint(&out->queue_endpoint, queue, strlen(queue));
    return status;
}

int azure_credentials_init(azure_credentials *out, const char *account)
{
    const char *text = environment("AZURE_STORAGE_CONNECTION_STRING");
    *out = (azure_credentials){0};
    pthread_mutex_init(&out->identity.lock, NULL);
    int status = text ? azure_connection_string(out, text) : from_variables(out, account);
    if (status == SHOAL_OK)
        status = custom_endpoints(out);
    if (status == SHOAL_OK)
        status = default_endpoints(out, "https", "core.windows.net");
    if (status == SHOAL_OK && strcmp(out->account, account) != 0)
        status = shoal_fail(SHOAL_DENIED, "the credentials belong to account '%s', not '%s' (%s)", out->account,
                            account, text ? "AZURE_STORAGE_CONNECTION_STRING" : "AZURE_STORAGE_ACCOUNT");
    return status;
}

void azure_credentials_release(azure_credentials *credentials)
{
    base_free(&credentials->account);
    base_free(&credentials->blob_endpoint);
    base_free(&credentials->queue_endpoint);
    base_secret_free(&credentials->key);
    base_secret_free(&credentials->sas);
    base_free(&credentials->identity.url);
    base_secret_free(&credentials->identity.header);
    base_secret_free(&credentials->identity.token);
    http_pool_free(&credentials->identity.pool);
}
