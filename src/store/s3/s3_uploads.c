/* Unfinished multipart uploads, as the server lists them: where an interrupted put can continue. */
#include "s3_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "store/xml.h"

/* ---- which uploads there are ------------------------------------------------------------------------------------- */

typedef struct finding {
    const char *key;
    char *upload, *row_upload; /* the last of the key, and that of the row that is read */
    bool is_key;               /* the row's */
} finding;

static int read_upload(void *context, const char *path, const char *text, size_t length)
{
    finding *self = context;
    if (text && strcmp(path, "ListMultipartUploadsResult/Upload/Key") == 0)
        self->is_key = strcmp(text, self->key) == 0;
    if (text && strcmp(path, "ListMultipartUploadsResult/Upload/UploadId") == 0) {
        base_free(&self->row_upload);
        return length > 0 ? base_copy_text_n(&self->row_upload, text, length) : SHOAL_OK;
    }
    if (!text && strcmp(path, "ListMultipartUploadsResult/Upload") == 0) {
        if (self->is_key && self->row_upload) {
            base_free(&self->upload);
            self->upload = self->row_upload;
            self->row_upload = NULL;
        }
        base_free(&self->row_upload);
        self->is_key = false;
    }
    return SHOAL_OK;
}

int s3_upload_parse(char **out, const char *key, const char *text, size_t size)
{
    finding self = {.key = key};
    int status = xml_read(text, size, read_upload, &self);
    base_free(&self.row_upload);
    if (status < 0)
        base_free(&self.upload);
    *out = self.upload;
    return status;
}

int s3_find_upload(s3_store *self, const char *key, char **out, store_attempt *attempt)
{
    s3_request request = {.http = {.method = "GET", .kind = SHOAL_REQUEST_LIST}};
    *out = NULL;
    s3_add_query(&request, "uploads", "");
    s3_add_query(&request, "prefix", key);
    int status = s3_perform(self, &request, attempt);
    if (status == SHOAL_OK && request.http.status != 200)
        status = s3_fail(self, &request, attempt);
    else if (status == SHOAL_OK)
        status = s3_upload_parse(out, key, request.http.answer, request.http.size);
    s3_request_release(&request);
    return status;
}

/* ---- what one of them has ---------------------------------------------------------------------------------------- */

typedef struct listing {
    s3_found_part *found;
    void *context;
    int64_t number, size;
    shoal_etag etag;
    bool truncated;
    int64_t next;
} listing;

static int read_part(void *context, const char *path, const char *text, size_t length)
{
    static const char root[] = "ListPartsResult/";
    listing *self = context;
    if (strncmp(path, root, sizeof root - 1) != 0)
        return SHOAL_OK;
    const char *name = path + sizeof root - 1;
    if (!text && strcmp(name, "Part") == 0) {
        self->found(self->context, self->number, self->size, self->etag.text);
        self->number = self->size = -1;
        self->etag = (shoal_etag){""};
    } else if (text && strcmp(name, "Part/PartNumber") == 0) {
        self->number = base_parse_count(&self->number, text) ? self->number : -1;
    } else if (text && strcmp(name, "Part/Size") == 0) {
        self->size = base_parse_count(&self->size, text) ? self->size : -1;
    } else if (text && strcmp(name, "Part/ETag") == 0 && length > 0) {
        bool quoted = length >= 2 && text[0] == '"' && text[length - 1] == '"';
        return length > 2 * (size_t)quoted ? store_etag_set(&self->etag, text + quoted, length - 2 * quoted) : SHOAL_OK;
    } else if (text && strcmp(name, "IsTruncated") == 0) {
        self->truncated = strcmp(text, "true") == 0;
    } else if (text && strcmp(name, "NextPartNumberMarker") == 0) {
        self->next = base_parse_count(&self->next, text) ? self->next : 0;
    }
    return SHOAL_OK;
}

int s3_parts_parse(int64_t *next, s3_found_part *found, void *context, const char *text, size_t size)
{
    listing self = {.found = found, .context = context, .number = -1, .size = -1};
    int status = xml_read(text, size, read_part, &self);
    *next = self.truncated ? self.next : 0;
    return status;
}

int s3_list_parts(s3_store *self, const char *key, const char *upload, s3_found_part *found, void *context,
                  store_attempt *attempt)
{
    int64_t after = 0, next = 0;
    int status = SHOAL_OK;
    do {
        s3_request request = {.key = key, .http = {.method = "GET", .kind = SHOAL_REQUEST_LIST}};
        char marker[24];
        after = next;
        snprintf(marker, sizeof marker, "%lld", (long long)after);
        s3_add_query(&request, "uploadId", upload);
        if (after > 0)
            s3_add_query(&request, "part-number-marker", marker);
        status = s3_perform(self, &request, attempt);
        if (status == SHOAL_OK && request.http.status != 200)
            status = s3_fail(self, &request, attempt);
        else if (status == SHOAL_OK)
            status = s3_parts_parse(&next, found, context, request.http.answer, request.http.size);
        s3_request_release(&request);
    } while (status == SHOAL_OK && next > after);
    return status;
}
