/* Large bodies in parts: ranges of a get at once, and multipart uploads.
 *
 * A multipart upload takes effect when it is completed, as a whole; until then its parts lie around and cost money, so
 * a failure of any kind is followed by an attempt to abort it.  A killed process can't do that: so the next put of the
 * key continues the upload that it finds, if all its parts are parts of the same body, by their MD5, which is what the
 * server calls them.  Parts of two bodies are never mixed: completing names each by its MD5.  Conditions are not for
 * multipart uploads: some servers ignore them there. */
#include "s3_internal.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/world.h"
#include "store/store_parallel.h"
#include "store/xml.h"

enum { ABORT_SECONDS = 3 };

/* ---- what both have in common ------------------------------------------------------------------------------------ */

/* A request under way for one part; on the heap, since its address must last. */
static int start_part(s3_store *self, s3_request **kept, s3_request *request, http_request *out, int64_t deadline)
{
    s3_request *part = NULL;
    int status = base_alloc(&part, 1, sizeof *part, "a request");
    if (status < 0)
        return status;
    *kept = part;
    *part = *request;
    /* The values of headers lie in the struct, which was copied. */
    for (size_t i = 0; i < part->header_count; i++) {
        if (part->headers[i].value == request->range)
            part->headers[i].value = part->range;
        if (part->headers[i].value == request->condition)
            part->headers[i].value = part->condition;
    }
    status = s3_prepare(self, part, deadline);
    *out = part->http;
    part->http.headers_sent = NULL; /* handed over */
    return status;
}

/* Takes the answer back, so that it can be judged and freed with the rest. */
static void take_part(s3_request *part, http_request *http)
{
    part->http = *http;
    *http = (http_request){0};
}

static void free_part(s3_request **part)
{
    if (*part)
        s3_request_release(*part);
    base_free(part);
}

/* ---- getting ----------------------------------------------------------------------------------------------------- */

typedef struct getting {
    s3_store *self;
    const char *key;
    int64_t offset; /* in the blob, of the first byte that is missing */
    char *to;
    size_t size;
    const shoal_etag *etag;
    int64_t deadline;
    s3_request **parts;
} getting;

static size_t part_size(const getting *job, size_t item)
{
    size_t left = job->size - item * S3_RANGE;
    return left < S3_RANGE ? left : S3_RANGE;
}

static int ask_range(void *context, size_t item, http_request *out)
{
    getting *job = context;
    s3_request request = {.key = job->key,
                          .http = {.method = "GET",
                                   .kind = SHOAL_REQUEST_GET,
                                   .buffer = job->to + item * S3_RANGE,
                                   .room = part_size(job, item)}};
    s3_add_range(&request, job->offset + (int64_t)(item * S3_RANGE), (int64_t)part_size(job, item));
    s3_add_condition(job->self, &request, job->etag);
    return start_part(job->self, &job->parts[item], &request, out, job->deadline);
}

static int take_range(void *context, size_t item, http_request *http, bool asked, store_attempt *attempt)
{
    getting *job = context;
    s3_request *part = job->parts[item];
    int status = SHOAL_OK;
    if (part)
        take_part(part, http);
    if (part && asked) {
        status = s3_judge(job->self, part, attempt);
        if (status == SHOAL_OK && (part->http.status == 412 || part->http.status == 416)) {
            /* It was replaced between two ranges.  The whole get must start again, which is up to the layer above. */
            attempt->cause = SHOAL_CAUSE_RACE;
            status = store_fail(&job->self->store, job->key, SHOAL_CONFLICT, "it was replaced while being read");
        } else if (status == SHOAL_OK && part->http.status != 206) {
            status = s3_fail(job->self, part, attempt);
        } else if (status == SHOAL_OK && part->http.size != part_size(job, item)) {
            status = store_fail(&job->self->store, job->key, SHOAL_BROKEN, "the server sent %zu of %zu bytes",
                                part->http.size, part_size(job, item));
        }
    }
    free_part(&job->parts[item]);
    return status;
}

int s3_get_parts(s3_store *self, const char *key, int64_t offset, char *to, size_t size, const shoal_etag *etag,
                 store_attempt *attempt)
{
    getting job = {self, key, offset, to, size, etag, attempt->deadline, NULL};
    const store_parallel work = {&self->store, self->pool, &job, ask_range, take_range};
    size_t count = size / S3_RANGE + (size % S3_RANGE > 0);
    int status = base_alloc(&job.parts, count, sizeof *job.parts, "ranges");
    if (status == SHOAL_OK)
        status = store_parallel_run(&work, count, attempt);
    base_free(&job.parts);
    return status;
}

/* ---- putting ----------------------------------------------------------------------------------------------------- */

typedef struct putting {
    s3_store *self;
    const char *key;
    const store_body *body;
    size_t size, part; /* bytes of all, and of each part but the last */
    size_t count;
    char *upload; /* its id */
    int64_t deadline;
    struct sent {
        s3_request *request;
        char number[24];
        shoal_etag etag; /* "" until the server has it */
    } * parts;
    size_t *missing; /* those that are to be sent */
    size_t kept;     /* parts that an earlier put has sent */
    bool other;      /* the upload that was found is one of other bytes */
    bool adopted;    /* another put has begun the upload, and may still be at it */
    bool ended;      /* another put of the key went on with this upload, and has ended it or changed its parts */
} putting;

/* A run of the body, which may lie across its two pieces. */
static store_body cut_body(const store_body *body, size_t offset, size_t size)
{
    store_body out = {{{NULL, 0}, {NULL, 0}}};
    for (int i = 0; i < 2; i++) {
        size_t length = body->part[i].iov_len, skip = offset < length ? offset : length;
        size_t take = length - skip < size ? length - skip : size;
        if (take > 0) /* a piece of nothing may lie nowhere */
            out.part[i] = (struct iovec){(char *)body->part[i].iov_base + skip, take};
        offset -= skip;
        size -= take;
    }
    return out;
}

static store_body body_of_part(const putting *job, size_t number)
{
    size_t offset = number * job->part, left = job->size - offset;
    return cut_body(job->body, offset, left < job->part ? left : job->part);
}

static int ask_put(void *context, size_t item, http_request *out)
{
    putting *job = context;
    size_t number = job->missing[item];
    struct sent *sent = &job->parts[number];
    s3_request request = {
        .key = job->key,
        .http = {.method = "PUT", .kind = SHOAL_REQUEST_PUT, .body = body_of_part(job, number), .sends_body = true}};
    s3_add_query(&request, "partNumber", sent->number);
    s3_add_query(&request, "uploadId", job->upload);
    return start_part(job->self, &sent->request, &request, out, job->deadline);
}

static int fail_put(putting *job, const s3_request *request, store_attempt *attempt)
{
    s3_error error;
    s3_error_parse(&error, request->http.answer, request->http.size);
    job->ended |= strcmp(error.code, "NoSuchUpload") == 0 || strcmp(error.code, "InvalidPart") == 0;
    return s3_fail(job->self, request, attempt);
}

static int take_put(void *context, size_t item, http_request *http, bool asked, store_attempt *attempt)
{
    putting *job = context;
    struct sent *sent = &job->parts[job->missing[item]];
    int status = SHOAL_OK;
    if (sent->request)
        take_part(sent->request, http);
    if (sent->request && asked) {
        status = s3_judge(job->self, sent->request, attempt);
        if (status == SHOAL_OK && sent->request->http.status != 200)
            status = fail_put(job, sent->request, attempt);
        if (status == SHOAL_OK)
            status = s3_read_etag(job->self, sent->request, &sent->etag);
    }
    free_part(&sent->request);
    return status;
}

static int read_upload(void *context, const char *path, const char *text, size_t length)
{
    char **out = context;
    if (!text || strcmp(path, "InitiateMultipartUploadResult/UploadId") != 0 || length == 0)
        return SHOAL_OK;
    base_free(out);
    return base_copy_text_n(out, text, length);
}

static int begin_upload(putting *job, store_attempt *attempt)
{
    s3_request request = {.key = job->key, .http = {.method = "POST", .kind = SHOAL_REQUEST_PUT}};
    s3_add_query(&request, "uploads", "");
    int status = s3_perform(job->self, &request, attempt);
    if (status == SHOAL_OK && request.http.status != 200)
        status = s3_fail(job->self, &request, attempt);
    else if (status == SHOAL_OK)
        status = xml_read(request.http.answer, request.http.size, read_upload, &job->upload);
    if (status == SHOAL_OK && !job->upload)
        status = store_fail(&job->self->store, job->key, SHOAL_BROKEN, "the server started an upload without an id");
    s3_request_release(&request);
    return status;
}

/* The list of parts.  Etags come from the server, and go back to it as they came, but for what XML would misread. */
static int write_parts(char **out, const putting *job)
{
    size_t row = sizeof "<Part><PartNumber></PartNumber><ETag></ETag></Part>" + 2 * 24 + SHOAL_ETAG_BYTES, used;
    int status = base_alloc(out, job->count + 2, row, "a list of parts");
    if (status < 0)
        return status;
    used = (size_t)sprintf(*out, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < job->count; i++) {
        if (strpbrk(job->parts[i].etag.text, "<>&"))
            return store_fail(&job->self->store, job->key, SHOAL_BROKEN,
                              "the server's ETag of a part is malformed: '%s'", job->parts[i].etag.text);
        used += (size_t)sprintf(*out + used, "<Part><PartNumber>%s</PartNumber><ETag>\"%s\"</ETag></Part>",
                                job->parts[i].number, job->parts[i].etag.text);
    }
    strcpy(*out + used, "</CompleteMultipartUpload>");
    return SHOAL_OK;
}

/* What the server makes of the completed upload. */
typedef struct completion {
    bool done;
    shoal_etag etag;
} completion;

static int read_completion(void *context, const char *path, const char *text, size_t length)
{
    completion *out = context;
    if (strncmp(path, "CompleteMultipartUploadResult", 29) == 0)
        out->done = true;
    if (!text || strcmp(path, "CompleteMultipartUploadResult/ETag") != 0)
        return SHOAL_OK;
    bool quoted = length >= 2 && text[0] == '"' && text[length - 1] == '"';
    return length > 0 ? store_etag_set(&out->etag, text + quoted, length - 2 * quoted) : SHOAL_OK;
}

/* radosgw leaves the etag of what it has made empty.  It is the one AWS would give: MD5 of the MD5s of all parts,
 * which are the parts' etags, and their number.  To ask for it would be to risk another writer's. */
static int derive_etag(const putting *job, shoal_etag *out)
{
    unsigned char sum[16], hash[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_md5(), NULL) == 1;
    for (size_t i = 0; i < job->count && good; i++) {
        const char *text = job->parts[i].etag.text;
        good = strlen(text) == 2 * sizeof sum && base_hex_read(sum, sizeof sum, text) &&
               EVP_DigestUpdate(context, sum, sizeof sum) == 1;
    }
    good = good && EVP_DigestFinal_ex(context, hash, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (!good)
        return store_fail(&job->self->store, job->key, SHOAL_BROKEN, "the server's answer has no ETag");
    base_hex_write(out->text, hash, sizeof sum);
    snprintf(out->text + 2 * sizeof sum, 24, "-%zu", job->count);
    return SHOAL_OK;
}

/* The answer may begin with 200 before the server knows, and then tell of a failure in its body. */
static int end_upload(putting *job, shoal_etag *etag, store_attempt *attempt)
{
    s3_request request = {.key = job->key, .http = {.method = "POST", .kind = SHOAL_REQUEST_PUT, .sends_body = true}};
    completion made = {0};
    char *list = NULL;
    int status = write_parts(&list, job);
    if (status == SHOAL_OK) {
        request.http.body.part[0] = (struct iovec){list, strlen(list)};
        s3_add_query(&request, "uploadId", job->upload);
        status = s3_perform(job->self, &request, attempt);
    }
    if (status == SHOAL_OK && request.http.status == 200)
        status = xml_read(request.http.answer, request.http.size, read_completion, &made);
    if (status == SHOAL_OK && !made.done)
        status = fail_put(job, &request, attempt);
    else if (status == SHOAL_OK && !made.etag.text[0])
        status = derive_etag(job, &made.etag);
    if (status == SHOAL_OK)
        *etag = made.etag;
    s3_request_release(&request);
    base_free(&list);
    return status;
}

/* Best effort, and without changing the message of what went wrong. */
static void abort_upload(putting *job)
{
    char message[1024];
    store_attempt attempt = {.deadline = base_time_after(base_now(), ABORT_SECONDS)};
    store_backoff backoff = {0};
    s3_request request = {.key = job->key, .http = {.method = "DELETE", .kind = SHOAL_REQUEST_REMOVE}};
    snprintf(message, sizeof message, "%s", shoal_error());
    s3_add_query(&request, "uploadId", job->upload);
    while (s3_perform(job->self, &request, &attempt) < 0 && store_backoff_sleep(&backoff, &job->self->store, &attempt))
        s3_request_release(&request);
    s3_request_release(&request);
    shoal_fail(SHOAL_OK, "%s", message);
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

/* MD5 as an etag has it; "" if OpenSSL does not allow it. */
static void name_body(char out[2 * EVP_MAX_MD_SIZE + 1], const store_body *body)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_md5(), NULL) == 1;
    for (int i = 0; i < 2 && good; i++)
        good = EVP_DigestUpdate(context, body->part[i].iov_base, body->part[i].iov_len) == 1;
    if (!good || EVP_DigestFinal_ex(context, hash, &length) != 1)
        length = 0;
    EVP_MD_CTX_free(context);
    base_hex_write(out, hash, length);
}

static void note_part(void *context, int64_t number, int64_t size, const char *etag)
{
    putting *job = context;
    char name[2 * EVP_MAX_MD_SIZE + 1] = "";
    bool ours = !job->other && number >= 1 && number <= (int64_t)job->count;
    if (ours) {
        const store_body body = body_of_part(job, (size_t)number - 1);
        ours = size == (int64_t)store_body_size(&body);
        if (ours)
            name_body(name, &body);
    }
    if (!ours || !name[0] || strcmp(name, etag) != 0) {
        job->other = true;
        return;
    }
    struct sent *part = &job->parts[number - 1];
    job->kept += part->etag.text[0] == '\0';
    snprintf(part->etag.text, sizeof part->etag.text, "%.*s", (int)sizeof part->etag.text - 1, name);
}

/* An upload that another put has started is left alone: it may still be in progress, and the next put of the same bytes
 * continues it. */
static void abort_own_upload(putting *job)
{
    if (job->upload && !job->adopted)
        abort_upload(job);
}

static void forget_upload(putting *job)
{
    base_free(&job->upload);
    for (size_t i = 0; i < job->count; i++)
        job->parts[i].etag = (shoal_etag){""};
    job->kept = 0;
}

/* What an earlier put of the same bytes has left.  Without permission to ask, or without an answer, the upload starts
 * again. */
static void find_upload(putting *job, store_attempt *attempt)
{
    store_attempt asking = {.deadline = attempt->deadline};
    int status = s3_find_upload(job->self, job->key, &job->upload, &asking);
    if (status == SHOAL_OK && job->upload)
        status = s3_list_parts(job->self, job->key, job->upload, note_part, job, &asking);
    if (status < 0 || job->other || job->kept == 0)
        forget_upload(job);
    job->adopted = job->upload != NULL;
}

static int put_all(putting *job, shoal_etag *etag, store_attempt *attempt)
{
    const store_parallel work = {&job->self->store, job->self->pool, job, ask_put, take_put};
    size_t missing = 0;
    int status = job->upload ? SHOAL_OK : begin_upload(job, attempt);
    for (size_t i = 0; i < job->count; i++)
        if (!job->parts[i].etag.text[0])
            job->missing[missing++] = i;
    if (status == SHOAL_OK)
        status = store_parallel_run(&work, missing, attempt);
    if (status == SHOAL_UNKNOWN)
        status = SHOAL_AGAIN; /* a part that may be there is nothing yet */
    return status == SHOAL_OK ? end_upload(job, etag, attempt) : status;
}

int s3_put_parts(s3_store *self, const char *key, const store_body *body, shoal_etag *etag, store_attempt *attempt)
{
    putting job = {
        .self = self, .key = key, .body = body, .size = store_body_size(body), .deadline = attempt->deadline};
    job.part = job.size / S3_PARTS_MOST + 1 < S3_PART ? S3_PART : job.size / S3_PARTS_MOST + 1;
    job.count = job.size / job.part + (job.size % job.part > 0);
    int status = base_alloc(&job.parts, job.count, sizeof *job.parts, "parts");
    if (status == SHOAL_OK)
        status = base_alloc(&job.missing, job.count, sizeof *job.missing, "parts");
    for (size_t i = 0; i < job.count && status == SHOAL_OK; i++)
        snprintf(job.parts[i].number, sizeof job.parts[i].number, "%zu", i + 1);
    if (status == SHOAL_OK)
        find_upload(&job, attempt);
    for (size_t i = 0; i < job.count && status == SHOAL_OK && job.adopted && attempt->number == 1; i++) {
        const store_body part = body_of_part(&job, i);
        self->store.counts.kept += job.parts[i].etag.text[0] ? (int64_t)store_body_size(&part) : 0;
    }
    if (status == SHOAL_OK)
        status = put_all(&job, etag, attempt);
    if (status < 0 && job.ended) {
        abort_own_upload(&job);
        forget_upload(&job);
        job.adopted = false;
        status = put_all(&job, etag, attempt);
    }
    if (status < 0)
        abort_own_upload(&job);
    base_free(&job.upload);
    base_free(&job.missing);
    base_free(&job.parts);
    return status;
}
