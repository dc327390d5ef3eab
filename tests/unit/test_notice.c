/* src/launch/cloud/notice.c and notice_read.c: what makes a machine go, and what does not; and a metadata service that
 * hands out tokens, refuses old ones and those who have none. */
#include "http_support.h"

#include <time.h>

#include <shoal/error.h>
#include <shoal/store.h>

#include "base/memory.h"
#include "base/world.h"
#include "launch/cloud/notice.h"

/* ---- documents --------------------------------------------------------------------------------------------------- */

static char why[CLOUD_NOTICE_BYTES];

static void documents_of_amazon(void **state)
{
    static const char good[] = "{\"action\": \"terminate\", \"time\": \"2026-11-19T21:00:00Z\"}";
    static const char sly[] = "{\"action\": \"stop\\u001b[2J\", \"time\": 7}";
    static const char *const bad[] = {"", "{}", "[]", "{\"action\": \"\"}", "{\"action\": 1}", "terminate"};
    (void)state;
    assert_int_equal(cloud_notice_read_aws(why, good, strlen(good)), SHOAL_OK);
    assert_string_equal(why, "spot interruption: terminate at 2026-11-19T21:00:00Z");
    assert_int_equal(cloud_notice_read_aws(why, sly, strlen(sly)), SHOAL_OK);
    assert_string_equal(why, "spot interruption: stop[2J at ");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(cloud_notice_read_aws(why, bad[i], strlen(bad[i])), SHOAL_BROKEN);
        assert_string_equal(why, "");
    }
}

static void assert_azure(const char *type, const char *status, const char *names, const char *expected)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"DocumentIncarnation\": 2, \"Events\": [{\"EventId\": \"A\", \"EventType\": \"%s\", \"ResourceType\": "
             "\"VirtualMachine\", \"Resources\": [%s], \"EventStatus\": \"%s\", \"NotBefore\": \"soon\"}]}",
             type, names, status);
    assert_int_equal(cloud_notice_read_azure(why, text, strlen(text), "Vm-7"), SHOAL_OK);
    assert_string_equal(why, expected);
}

static void documents_of_azure(void **state)
{
    static const char none[] = "{\"DocumentIncarnation\": 1, \"Events\": []}";
    static const char odd[] = "{\"Events\": [7, {}, {\"EventType\": \"Preempt\", \"Resources\": \"vm-7\"}]}";
    (void)state;
    assert_azure("Preempt", "Scheduled", "\"other\", \"vm-7\"", "scheduled event: Preempt not before soon");
    assert_azure("Reboot", "Started", "\"VM-7\"", "scheduled event: Reboot not before soon");
    assert_azure("Preempt", "Scheduled", "\"other\"", ""); /* it is about another machine of the set */
    assert_azure("Freeze", "Scheduled", "\"vm-7\"", "");
    assert_azure("Preempt", "Completed", "\"vm-7\"", "");
    assert_int_equal(cloud_notice_read_azure(why, none, strlen(none), "vm-7"), SHOAL_OK);
    assert_string_equal(why, "");
    assert_int_equal(cloud_notice_read_azure(why, odd, strlen(odd), "vm-7"), SHOAL_OK);
    assert_string_equal(why, "");
    assert_int_equal(cloud_notice_read_azure(why, "{}", 2, "vm-7"), SHOAL_BROKEN);
}

static void documents_of_google(void **state)
{
    (void)state;
    assert_int_equal(cloud_notice_read_gcp(why, "TRUE\n", 5), SHOAL_OK);
    assert_string_equal(why, "preempted");
    assert_int_equal(cloud_notice_read_gcp(why, "FALSE", 5), SHOAL_OK);
    assert_string_equal(why, "");
    assert_int_equal(cloud_notice_read_gcp(why, "TRU", 3), SHOAL_BROKEN);
}

/* ---- a world where pauses are short ------------------------------------------------------------------------------ */

struct base_thread {
    pthread_t thread;
    void (*run)(void *context);
    void *context;
};

static int64_t now_really(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void wait_little(const _Atomic uint32_t *word, uint32_t value, int64_t until)
{
    (void)word, (void)value, (void)until;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void wake_nobody(const _Atomic uint32_t *word, int most)
{
    (void)word, (void)most;
}

static void *run_thread(void *context)
{
    base_thread *own = context;
    own->run(own->context);
    return NULL;
}

static int start_thread(base_thread **out, void (*run)(void *context), void *context)
{
    *out = malloc(sizeof **out);
    **out = (base_thread){.run = run, .context = context};
    return pthread_create(&(*out)->thread, NULL, run_thread, *out) == 0 ? SHOAL_OK : SHOAL_SYSTEM;
}

static void join_thread(base_thread *thread)
{
    pthread_join(thread->thread, NULL);
    free(thread);
}

static const base_world quick_world = {
    .now = now_really, .wait = wait_little, .wake = wake_nobody, .start = start_thread, .join = join_thread};

/* ---- services ---------------------------------------------------------------------------------------------------- */

static _Atomic int token = 1; /* that is good now */
static _Atomic int looked;    /* times that somebody with a good token looked */
static _Atomic bool going;

static bool refuse(int socket, const char *what)
{
    char head[128];
    snprintf(head, sizeof head, "%s\r\nContent-Length: 0", what);
    reply(socket, head, NULL, 0);
    return true;
}

/* As today's images have it: nothing without a token. */
static bool answer_as_amazon(int socket, asked *request)
{
    char text[128];
    if (strcmp(request->method, "PUT") == 0 && strcmp(request->path, "/latest/api/token") == 0) {
        if (!strcasestr(request->head, "\r\nX-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"))
            return refuse(socket, "400 Bad Request");
        snprintf(text, sizeof text, "token%d", token);
        text_reply(socket, text, false);
        return true;
    }
    snprintf(text, sizeof text, "\r\nX-aws-ec2-metadata-token: token%d\r\n", token);
    if (!strcasestr(request->head, text))
        return refuse(socket, "401 Unauthorized");
    if (strcmp(request->path, "/latest/meta-data/spot/instance-action") != 0)
        return refuse(socket, "400 Bad Request");
    looked++;
    if (!going)
        return refuse(socket, "404 Not Found");
    text_reply(socket, "{\"action\":\"terminate\",\"time\":\"t\"}", false);
    return true;
}

static bool answer_as_azure(int socket, asked *request)
{
    if (!strcasestr(request->head, "\r\nMetadata: true\r\n"))
        return refuse(socket, "400 Bad Request");
    if (strncmp(request->path, "/metadata/instance/compute/name?", 32) == 0)
        text_reply(socket, "vm-7", false);
    else if (strcmp(request->path, "/metadata/scheduledevents?api-version=2020-07-01") == 0)
        text_reply(socket, "{\"Events\":[{\"EventType\":\"Preempt\",\"Resources\":[\"vm-7\"],\"NotBefore\":\"n\"}]}",
                   false);
    else
        return refuse(socket, "404 Not Found");
    return true;
}

static bool answer_as_google(int socket, asked *request)
{
    if (!strcasestr(request->head, "\r\nMetadata-Flavor: Google\r\n"))
        return refuse(socket, "403 Forbidden");
    if (strcmp(request->path, "/computeMetadata/v1/instance/preempted") != 0)
        return refuse(socket, "404 Not Found");
    text_reply(socket, "TRUE", false);
    return true;
}

static bool answer_no_cloud(int socket, asked *request)
{
    (void)request;
    return refuse(socket, "404 Not Found");
}

static _Atomic uint32_t said;
static char said_last[256];

static void keep_line(void *context, const char *line)
{
    (void)context;
    snprintf(said_last, sizeof said_last, "%s", line);
    atomic_fetch_add(&said, 1);
}

static cloud_notice *start(const char *name, bool (*answer)(int socket, asked *request))
{
    cloud_notice *notice = NULL;
    char address[64];
    server.answer = answer;
    snprintf(address, sizeof address, "http://127.0.0.1:%d/", server.port);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address, 1);
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", address, 1);
    setenv("GCE_METADATA_HOST", strchr(address, '1'), 1); /* without a scheme */
    looked = 0;
    said = 0;
    assert_int_equal(cloud_notice_start(&notice, name, keep_line, NULL), SHOAL_OK);
    return notice;
}

static void wait_for(bool (*what)(const cloud_notice *notice), const cloud_notice *notice)
{
    int64_t until = shoal_after(60);
    while (!what(notice)) {
        assert_true(base_now() < until);
        base_sleep_until(shoal_after(0.005));
    }
}

static bool is_given(const cloud_notice *notice)
{
    return cloud_notice_given(notice);
}

static bool was_looked_at(const cloud_notice *notice)
{
    (void)notice;
    return looked > 0;
}

static bool was_said(const cloud_notice *notice)
{
    (void)notice;
    return said > 0;
}

static void an_interruption_is_heard_of_with_a_token_that_is_renewed(void **state)
{
    (void)state;
    going = false;
    cloud_notice *notice = start("aws", answer_as_amazon);
    wait_for(was_looked_at, notice);
    assert_null(cloud_notice_given(notice));
    token++; /* the old one has expired */
    going = true;
    wait_for(is_given, notice);
    assert_string_equal(cloud_notice_given(notice), "spot interruption: terminate at t");
    cloud_notice_stop(&notice);
    assert_int_equal(said, 0);
}

static void the_cloud_is_found_out(void **state)
{
    static bool (*const answers[])(int socket, asked *request) = {answer_as_amazon, answer_as_azure, answer_as_google};
    static const char *const expected[] = {"spot interruption: terminate at t", "scheduled event: Preempt not before n",
                                           "preempted"};
    (void)state;
    going = true;
    for (int i = 0; i < 3; i++) {
        cloud_notice *notice = start("auto", answers[i]);
        wait_for(is_given, notice);
        assert_string_equal(cloud_notice_given(notice), expected[i]);
        cloud_notice_stop(&notice);
    }
}

static void on_a_machine_of_no_cloud_one_line_says_so(void **state)
{
    (void)state;
    cloud_notice *notice = start("auto", answer_no_cloud);
    wait_for(was_said, notice);
    assert_non_null(strstr(said_last, "it will not be known in advance when this machine goes"));
    assert_null(cloud_notice_given(notice));
    cloud_notice_stop(&notice);
    assert_int_equal(said, 1);
}

static void a_service_that_is_away_is_said_and_asked_again(void **state)
{
    (void)state;
    going = true;
    cloud_notice *notice = start("gcp", answer_no_cloud);
    wait_for(was_said, notice);
    assert_non_null(strstr(said_last, "trying again"));
    server.answer = answer_as_google;
    wait_for(is_given, notice);
    cloud_notice_stop(&notice);
}

static void failing_memory_is_reported(void **state)
{
    cloud_notice *notice = NULL;
    int64_t n = 0;
    (void)state;
    server.answer = answer_no_cloud;
    for (int status = SHOAL_MEMORY; status < 0; n++) {
        assert_true(n < 100);
        base_memory_fail_here(n);
        status = cloud_notice_start(&notice, "aws", NULL, NULL);
        base_memory_fail_here(-1);
        cloud_notice_stop(&notice);
    }
    assert_true(n > 1);
}

static void names(void **state)
{
    (void)state;
    assert_true(cloud_notice_is_known("auto") && cloud_notice_is_known("aws") && cloud_notice_is_known("azure") &&
                cloud_notice_is_known("gcp"));
    assert_false(cloud_notice_is_known("aw") || cloud_notice_is_known("/run/eviction") || cloud_notice_is_known(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_of_amazon),
        cmocka_unit_test(documents_of_azure),
        cmocka_unit_test(documents_of_google),
        cmocka_unit_test(an_interruption_is_heard_of_with_a_token_that_is_renewed),
        cmocka_unit_test(the_cloud_is_found_out),
        cmocka_unit_test(on_a_machine_of_no_cloud_one_line_says_so),
        cmocka_unit_test(a_service_that_is_away_is_said_and_asked_again),
        cmocka_unit_test(failing_memory_is_reported),
        cmocka_unit_test(names),
    };
    base_world_set(&quick_world);
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
