/* One request to EC2: signed, sent, and sent again while that may help.  See ec2.h.
 *
 * Every request may be repeated: reading and ending by their nature, starting since it carries a client token.  What
 * EC2 refuses it says by a code in an XML document, and the code decides, not the HTTP status: no capacity is a 500. */
#include "ec2.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/secret.h"
#include "base/world.h"

enum { ANSWER_MOST = 16 << 20, CLOCK_OFF_MOST = 240 /* seconds; EC2 accepts 300 */ };

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static void append_pair(ec2_form *form, const char *name, const char *value)
{
    char *encoded = NULL, *longer = NULL;
    if (form->status == SHOAL_OK)
        form->status = http_encode(&encoded, value, false);
    if (form->status == SHOAL_OK)
        form->status =
            base_format(&longer, "%s%s%s=%s", form->text ? form->text : "", form->text ? "&" : "", name, encoded);
    if (form->status == SHOAL_OK) {
        base_free(&form->text);
        form->text = longer;
    }
    base_free(&encoded);
}

void ec2_form_start(ec2_form *form, const char *action)
{
    *form = (ec2_form){0};
    append_pair(form, "Action", action);
    append_pair(form, "Version", EC2_VERSION);
}

void ec2_form_add(ec2_form *form, const char *value, const char *name, ...)
{
    char full[160];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(full, sizeof full, name, arguments);
    va_end(arguments);
    append_pair(form, full, value);
}

void ec2_form_number(ec2_form *form, int64_t value, const char *name, ...)
{
    char full[160], text[32];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(full, sizeof full, name, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "%lld", (long long)value);
    append_pair(form, full, text);
}

/* ---- signing ----------------------------------------------------------------------------------------------------- */

static int add_authorisation(http_request *http, const s3_signing *signing, const char *id)
{
    s3_signature signature = {0};
    int status = s3_sign(&signature, signing);
    for (size_t i = 0; i < signing->header_count && status == SHOAL_OK; i++)
        status = http_add_header(http, "%s: %s", signing->headers[i].name, signing->headers[i].value);
    if (status == SHOAL_OK)
        status =
            http_add_header(http, "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                            id, signature.scope, signature.names, signature.hex);
    s3_signature_release(&signature);
    return status;
}

static int sign_form(http_request *http, const ec2 *self, const s3_keys *keys, int64_t wall)
{
    char hash[S3_HASH_TEXT], moment[32];
    time_t now = wall ? (time_t)wall : time(NULL);
    struct tm parts;
    s3_pair headers[4] = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}, {"Host", self->host}};
    strftime(moment, sizeof moment, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &parts));
    headers[2] = (s3_pair){"x-amz-date", moment};
    if (keys->token)
        headers[3] = (s3_pair){"x-amz-security-token", base_secret_text(keys->token)};
    const s3_signing signing = {.method = "POST",
                                .path = "/",
                                .headers = headers,
                                .header_count = keys->token ? 4 : 3,
                                .payload = hash,
                                .time = moment,
                                .region = self->base.region,
                                .service = "ec2",
                                .key = base_secret_text(keys->signing)};
    int status = s3_hash(hash, &http->body);
    return status == SHOAL_OK ? add_authorisation(http, &signing, keys->id) : status;
}

/* ---- what an answer means ---------------------------------------------------------------------------------------- */

static bool is_one_of(const char *code, const char *const *codes)
{
    for (; *codes; codes++)
        if (strcmp(code, *codes) == 0)
            return true;
    return false;
}

static const char *const throttled[] = {
    "RequestLimitExceeded",     "Throttling", "ThrottlingException", "EC2ThrottledException", "SlowDown",
    "TooManyRequestsException", NULL};
static const char *const failing[] = {"InternalError", "InternalFailure", "Unavailable", "ServiceUnavailable", NULL};
static const char *const about_keys[] = {"ExpiredToken", "RequestExpired", "ExpiredTokenException", NULL};
static const char *const about_signing[] = {"AuthFailure",    "SignatureDoesNotMatch", "InvalidClientTokenId",
                                            "RequestExpired", "RequestTimeTooSkewed",  NULL};

/* SHOAL_AGAIN: nothing was done; SHOAL_UNKNOWN: it may have been; SHOAL_OK: this is its answer. */
static int judge_passing(const ec2_answer *answer)
{
    const http_request *http = &answer->http;
    if (http->status == 0)
        return http->maybe_done ? SHOAL_UNKNOWN : SHOAL_AGAIN;
    if (is_one_of(answer->code, throttled) || (!*answer->code && http->status == 429))
        return SHOAL_AGAIN;
    return is_one_of(answer->code, failing) || (!*answer->code && http->status >= 500) ? SHOAL_UNKNOWN : SHOAL_OK;
}

static int fail_signing(const ec2_answer *answer, const ec2 *self)
{
    int64_t there = http_now(&answer->http), off = there < 0 ? 0 : (int64_t)time(NULL) - there;
    if (llabs(off) > CLOCK_OFF_MOST)
        return shoal_fail(SHOAL_DENIED, "this machine's clock is %lld seconds %s that of %s: set it (%s)", llabs(off),
                          off > 0 ? "ahead of" : "behind", self->host, answer->code);
    if (strcmp(answer->code, "SignatureDoesNotMatch") == 0)
        return shoal_fail(SHOAL_DENIED,
                          "the secret key does not belong to the access key id (AWS_SECRET_ACCESS_KEY; %s)",
                          answer->code);
    return shoal_fail(SHOAL_DENIED, "%s does not know these credentials: check AWS_ACCESS_KEY_ID or AWS_PROFILE (%s)",
                      self->host, answer->code);
}

static int fail_answer(const ec2_answer *answer, const ec2 *self)
{
    const http_request *http = &answer->http;
    if (is_one_of(answer->code, about_signing))
        return fail_signing(answer, self);
    if (is_one_of(answer->code, about_keys))
        return shoal_fail(SHOAL_DENIED, "these credentials have expired: get new ones (%s)", answer->code);
    if (strcmp(answer->code, "UnauthorizedOperation") == 0)
        return shoal_fail(SHOAL_DENIED, "these credentials do not permit it in %s (%s)", self->base.region,
                          answer->code);
    if (*answer->code)
        return shoal_fail(SHOAL_INVALID, "%s (%s)", *answer->message ? answer->message : "refused", answer->code);
    return shoal_fail(SHOAL_INVALID, "%s answered %d, which is no answer of EC2's", self->host, http->status);
}

/* ---- attempts ---------------------------------------------------------------------------------------------------- */

static int attempt_form(ec2_answer *out, ec2 *self, const ec2_form *form, int64_t deadline)
{
    s3_keys *keys = NULL;
    ec2_answer_release(out);
    *out->code = *out->message = '\0';
    out->http = (http_request){.method = "POST",
                               .url = self->url,
                               .kind = SHOAL_REQUEST_OTHER,
                               .body = {{{form->text, strlen(form->text)}}},
                               .sends_body = true,
                               .room = ANSWER_MOST};
    int status = s3_chain_get(&keys, self->chain, deadline);
    if (status < 0)
        return status;
    status = sign_form(&out->http, self, keys, form->moment);
    if (status == SHOAL_OK)
        status = http_perform(self->pool, &out->http, 1, deadline);
    if (status == SHOAL_OK && out->http.status != 0 && out->http.status != 200)
        ec2_read_error(out->code, out->message, out->http.answer, out->http.size);
    /* Keys that expired between two requests may have successors already. */
    if (status == SHOAL_OK && is_one_of(out->code, about_keys) && s3_chain_renew(self->chain, keys, deadline))
        status = shoal_fail(SHOAL_AGAIN, "the credentials had expired");
    s3_keys_free(&keys);
    return status;
}

/* Whether there is time for another attempt after `made` of them, and waits until it is due. */
static bool pause_before(int made, double asked, int64_t deadline)
{
    static const double FIRST = 0.2, MOST = 15;
    uint32_t bits;
    base_entropy(&bits, sizeof bits);
    double pause = fmin(FIRST * exp2(made < 10 ? made : 10), MOST) * (0.5 + bits * 0x1p-33), left;
    pause = fmax(pause, asked);
    left = base_seconds_until(deadline);
    if (left <= 0.01 || (asked > 0 && asked >= left))
        return false;
    base_sleep_until(base_time_after(base_now(), fmin(pause, left / 2)));
    return true;
}

static int fail_out_of_time(const ec2_answer *answer, const ec2 *self, int status, int made)
{
    const char *why = *answer->code ? answer->code : *answer->http.trouble ? answer->http.trouble : "the server failed";
    return shoal_fail(answer->unknown ? SHOAL_UNKNOWN : status, "%s does not answer: %s (gave up after %d attempt%s)",
                      self->host, why, made, made == 1 ? "" : "s");
}

int ec2_perform(ec2_answer *out, ec2 *self, ec2_form *form, int64_t deadline)
{
    int status = form->status, made = 0;
    *out = (ec2_answer){0};
    while (status == SHOAL_OK) {
        status = attempt_form(out, self, form, deadline);
        made++;
        if (status == SHOAL_OK)
            status = judge_passing(out);
        else if (status != SHOAL_AGAIN)
            break;
        if (status == SHOAL_OK) {
            status = out->http.status == 200 ? SHOAL_OK : fail_answer(out, self);
            break;
        }
        out->unknown |= status == SHOAL_UNKNOWN;
        if (pause_before(made, http_retry_after(&out->http), deadline))
            status = SHOAL_OK;
        else
            status = fail_out_of_time(out, self, status, made);
    }
    base_free(&form->text);
    return status;
}

void ec2_answer_release(ec2_answer *answer)
{
    http_request_release(&answer->http);
}
