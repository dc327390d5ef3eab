/* Asking a cloud's metadata service whether this machine is about to go.  See notice.h. */
#include "notice.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/http.h"

enum { ANSWER_MOST = 256 << 10, TRIES_OF_AUTO = 5 };
static const double EVERY_SECONDS = 1, ASK_SECONDS = 2; /* between two looks; that an answer may take */

struct cloud_notice {
    http_pool *pool;
    const struct cloud *cloud; /* NULL: not found out yet */
    char *base;                /* "http://169.254.169.254" */
    char *token, *own;         /* Amazon's token; this machine's name in Azure */
    void (*say)(void *context, const char *line);
    void *context;
    bool troubled; /* and that was said */
    char why[CLOUD_NOTICE_BYTES];
    atomic_bool given;
    _Atomic uint32_t over;
    base_thread *thread;
};

/* How one cloud is asked.  `ask` sets self->why when the machine is to go; SHOAL_ABSENT: nobody answers there. */
typedef struct cloud {
    const char *name, *variable; /* that moves the service, for tests and proxies */
    int (*ask)(cloud_notice *self, int64_t deadline);
} cloud;

/* SHOAL_OK for any answer below 500; the caller releases the request. */
static int ask_path(http_request *out, cloud_notice *self, const char *method, const char *path, const char *header,
                    int64_t deadline)
{
    char *url = NULL;
    *out = (http_request){.method = method, .kind = SHOAL_REQUEST_OTHER, .room = ANSWER_MOST};
    int status = base_format(&url, "%s%s", self->base, path);
    if (status == SHOAL_OK)
        status = http_add_header(out, "%s", header);
    if (status == SHOAL_OK) {
        out->url = url;
        status = http_perform(self->pool, out, 1, deadline);
        out->url = NULL;
    }
    if (status == SHOAL_OK && out->status == 0)
        status = shoal_fail(SHOAL_ABSENT, "no metadata service answers at %s (%s)", self->base, out->trouble);
    else if (status == SHOAL_OK && (out->status == 429 || out->status >= 500))
        status = shoal_fail(SHOAL_AGAIN, "the metadata service answered %d to %s", out->status, path);
    base_free(&url);
    return status;
}

static int fail_answer(const http_request *request, const char *path)
{
    return shoal_fail(SHOAL_ABSENT, "the metadata service answered %d to %s", request->status, path);
}

static int get_token(cloud_notice *self, int64_t deadline)
{
    http_request request;
    int status =
        ask_path(&request, self, "PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21600", deadline);
    if (status == SHOAL_OK && (request.status != 200 || request.size == 0))
        status = fail_answer(&request, "/latest/api/token");
    if (status == SHOAL_OK)
        status = base_copy_text_n(&self->token, request.answer, strcspn(request.answer, "\r\n"));
    http_request_release(&request);
    return status;
}

static int ask_aws(cloud_notice *self, int64_t deadline)
{
    static const char path[] = "/latest/meta-data/spot/instance-action";
    http_request request;
    char *header = NULL;
    int status = self->token ? SHOAL_OK : get_token(self, deadline);
    if (status == SHOAL_OK)
        status = base_format(&header, "X-aws-ec2-metadata-token: %s", self->token);
    if (status < 0)
        return status;
    status = ask_path(&request, self, "GET", path, header, deadline);
    if (status == SHOAL_OK && request.status == 401) /* it has expired: the next look gets another */
        base_free(&self->token);
    else if (status == SHOAL_OK && request.status == 200)
        status = cloud_notice_read_aws(self->why, request.answer, request.size);
    else if (status == SHOAL_OK && request.status != 404) /* 404: no interruption */
        status = fail_answer(&request, path);
    http_request_release(&request);
    base_free(&header);
    return status;
}

static int get_azure(char **out, cloud_notice *self, const char *path, int64_t deadline)
{
    http_request request;
    int status = ask_path(&request, self, "GET", path, "Metadata: true", deadline);
    if (status == SHOAL_OK && request.status != 200)
        status = fail_answer(&request, path);
    if (status == SHOAL_OK)
        status = base_copy_text_n(out, request.answer, request.size);
    http_request_release(&request);
    return status;
}

static int ask_azure(cloud_notice *self, int64_t deadline)
{
    char *events = NULL;
    int status = self->own ? SHOAL_OK
                           : get_azure(&self->own, self,
                                       "/metadata/instance/compute/name?api-version=2020-09-01&format=text", deadline);
    if (status == SHOAL_OK)
        status = get_azure(&events, self, "/metadata/scheduledevents?api-version=2020-07-01", deadline);
    if (status == SHOAL_OK)
        status = cloud_notice_read_azure(self->why, events, strlen(events), self->own);
    base_free(&events);
    return status;
}

static int ask_gcp(cloud_notice *self, int64_t deadline)
{
    static const char path[] = "/computeMetadata/v1/instance/preempted";
    http_request request;
    int status = ask_path(&request, self, "GET", path, "Metadata-Flavor: Google", deadline);
    if (status == SHOAL_OK && request.status != 200)
        status = fail_answer(&request, path);
    if (status == SHOAL_OK)
        status = cloud_notice_read_gcp(self->why, request.answer, request.size);
    http_request_release(&request);
    return status;
}

static const cloud clouds[] = {
    {"aws", "AWS_EC2_METADATA_SERVICE_ENDPOINT", ask_aws},
    {"azure", "AZURE_POD_IDENTITY_AUTHORITY_HOST", ask_azure},
    {"gcp", "GCE_METADATA_HOST", ask_gcp},
};
enum { CLOUDS = sizeof clouds / sizeof *clouds };

bool cloud_notice_is_known(const char *name)
{
    for (int i = 0; i < CLOUDS; i++)
        if (strcmp(name, clouds[i].name) == 0)
            return true;
    return strcmp(name, "auto") == 0;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* GCE_METADATA_HOST is a host without a scheme, the others are URLs. */
static int choose_base(cloud_notice *self, const cloud *of)
{
    const char *given = getenv(of->variable);
    size_t length = given ? strlen(given) : 0;
    base_free(&self->base);
    if (length == 0)
        return base_copy_text(&self->base, "http://169.254.169.254");
    length -= given[length - 1] == '/';
    return base_format(&self->base, "%s%.*s", strstr(given, "://") ? "" : "http://", (int)length, given);
}

static int ask_cloud(cloud_notice *self, const cloud *of)
{
    int status = choose_base(self, of);
    return status == SHOAL_OK ? of->ask(self, base_time_after(base_now(), ASK_SECONDS)) : status;
}

/* The first cloud whose questions are understood. */
static int find_cloud(cloud_notice *self)
{
    int status = SHOAL_ABSENT;
    for (int i = 0; i < CLOUDS && status < 0 && atomic_load(&self->over) == 0; i++) {
        status = ask_cloud(self, &clouds[i]);
        if (status == SHOAL_OK)
            self->cloud = &clouds[i];
    }
    return status;
}

/* Once for each time that it stops working. */
static void say_trouble(cloud_notice *self, int status, const char *after)
{
    char *line = NULL;
    if (status < 0 && !self->troubled && self->say && base_format(&line, "--notice: %s%s", shoal_error(), after) == 0)
        self->say(self->context, line);
    self->troubled = status < 0;
    base_free(&line);
}

static void watch_notices(void *context)
{
    cloud_notice *self = context;
    for (int tries = 0; atomic_load(&self->over) == 0; tries++) {
        int64_t next = base_time_after(base_now(), EVERY_SECONDS);
        int status = self->cloud ? ask_cloud(self, self->cloud) : find_cloud(self);
        if (!self->cloud && tries + 1 == TRIES_OF_AUTO) {
            say_trouble(self, status, ": it will not be known in advance when this machine goes");
            return;
        }
        if (self->cloud)
            say_trouble(self, status, "; trying again");
        if (*self->why) {
            atomic_store(&self->given, true);
            return;
        }
        base_wait_word(&self->over, 0, next);
    }
}

int cloud_notice_start(cloud_notice **out, const char *name, void (*say)(void *context, const char *line),
                       void *context)
{
    const http_settings settings = {.attempt_seconds = 1, .connect_seconds = 1, .metadata = true};
    cloud_notice *self = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "notices");
    if (status < 0)
        return status;
    self->say = say;
    self->context = context;
    for (int i = 0; i < CLOUDS; i++)
        if (strcmp(name, clouds[i].name) == 0)
            self->cloud = &clouds[i];
    status = http_pool_new(&self->pool, NULL, &settings);
    if (status == SHOAL_OK)
        status = base_thread_start(&self->thread, watch_notices, self);
    if (status < 0)
        cloud_notice_stop(&self);
    *out = self;
    return status;
}

const char *cloud_notice_given(const cloud_notice *self)
{
    return atomic_load(&self->given) ? self->why : NULL;
}

void cloud_notice_stop(cloud_notice **self)
{
    if (!*self)
        return;
    atomic_store(&(*self)->over, 1);
    base_wake_word(&(*self)->over, 1);
    base_thread_join(&(*self)->thread);
    http_pool_free(&(*self)->pool);
    base_free(&(*self)->base);
    base_free(&(*self)->token);
    base_free(&(*self)->own);
    base_free(self);
}
