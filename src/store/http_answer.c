/* Reading an answer: its headers, dates, and whether its failure is temporary.  See http.h. */
#include "http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/memory.h"

const char *http_header(const http_request *request, const char *name, char *buffer, size_t room)
{
    size_t length = strlen(name);
    for (const char *line = request->headers; line && *line;) {
        const char *end = line + strcspn(line, "\r\n");
        if ((size_t)(end - line) > length && line[length] == ':' && strncasecmp(line, name, length) == 0) {
            const char *value = line + length + 1;
            while (value < end && (*value == ' ' || *value == '\t'))
                value++;
            while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
            if ((size_t)(end - value) >= room)
                return NULL;
            memcpy(buffer, value, (size_t)(end - value));
            buffer[end - value] = 0;
            return buffer;
        }
        line = end + strspn(end, "\r\n");
    }
    return NULL;
}

int64_t http_date(const char *text)
{
    int64_t seconds = (int64_t)curl_getdate(text, NULL);
    return seconds < 0 ? -1 : seconds; /* an answer can't be dated before 1970 */
}

static int64_t date_header(const http_request *request, const char *name)
{
    char buffer[64];
    const char *text = http_header(request, name, buffer, sizeof buffer);
    return text ? http_date(text) : -1;
}

int64_t http_now(const http_request *request)
{
    return date_header(request, "date");
}

static double age_between(int64_t then, int64_t now)
{
    if (now < 0 || then < 0)
        return -1;
    return now > then ? (double)(now - then) : 0;
}

double http_age_at(int64_t now, const char *text)
{
    struct tm time = {0};
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour, &time.tm_min,
               &time.tm_sec) != 6)
        return age_between(http_date(text), now);
    time.tm_year -= 1900;
    time.tm_mon -= 1;
    return age_between(timegm(&time), now);
}

double http_age(const http_request *request)
{
    return age_between(date_header(request, "last-modified"), http_now(request));
}

double http_retry_after(const http_request *request)
{
    char buffer[64], *end = NULL;
    const char *text = http_header(request, "retry-after", buffer, sizeof buffer);
    double seconds = 0;
    if (!text || !*text)
        return 0;
    if (text[strspn(text, "0123456789")] == 0) {
        seconds = strtod(text, &end);
    } else {
        int64_t until = http_date(text), now = date_header(request, "date");
        if (until >= 0)
            seconds = (double)(until - (now >= 0 ? now : (int64_t)time(NULL)));
    }
    return !(seconds > 0) ? 0 : seconds > 3600 ? 3600 : seconds;
}

int http_passing(const http_request *request, store_attempt *attempt)
{
    if (request->status == 0) {
        attempt->cause = request->cause;
        return request->maybe_done ? SHOAL_UNKNOWN : SHOAL_AGAIN;
    }
    if (request->status != 429 && request->status < 500)
        return SHOAL_OK;
    bool throttled = request->status == 429 || request->status == 503;
    attempt->cause = throttled ? SHOAL_CAUSE_THROTTLED : SHOAL_CAUSE_SERVER;
    attempt->retry_after = http_retry_after(request);
    return request->status == 429 ? SHOAL_AGAIN : SHOAL_UNKNOWN;
}

int http_encode(char **out, const char *text, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t length = strlen(text), room;
    char *encoded = NULL;
    if (!base_multiply(&room, length, 3) || !base_add(&room, room, 1))
        return shoal_fail(SHOAL_MEMORY, "a text of %zu bytes does not fit in a URL", length);
    int status = base_alloc(&encoded, room, 1, "a URL");
    if (status < 0)
        return status;
    char *next = encoded;
    for (const char *c = text; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                     strchr("-._~", *c) || (keep_slash && *c == '/');
        if (plain) {
            *next++ = *c;
        } else {
            *next++ = '%';
            *next++ = digits[(unsigned char)*c >> 4];
            *next++ = digits[*c & 15];
        }
    }
    *out = encoded;
    return SHOAL_OK;
}
