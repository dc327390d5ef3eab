/* Amazon EC2: what its files share.  Requests are of the Query protocol, version 2016-11-15; answers are XML. */
#ifndef CLOUD_EC2_H
#define CLOUD_EC2_H

#include "cloud.h"
#include "store/http.h"
#include "store/s3/s3_internal.h"

#define EC2_VERSION "2016-11-15"

typedef struct ec2 {
    cloud base;
    char *url, *host; /* "https://ec2.eu-west-1.amazonaws.com/", and its host as the header has it */
    http_pool *pool;
    s3_chain *chain;
} ec2;

/* ---- requests (ec2_request.c) ------------------------------------------------------------------------------------ */

/* A form that grows: "Action=...&Version=...&InstanceId.1=...". */
typedef struct ec2_form {
    char *text;
    int64_t moment; /* that it is signed with, in seconds since 1970; 0: now */
    int status;     /* the first failure; later additions do nothing */
} ec2_form;

void ec2_form_start(ec2_form *form, const char *action);
/* "NAME=VALUE", encoded; a name may be made by printf. */
void ec2_form_add(ec2_form *form, const char *value, const char *name, ...) SHOAL_PRINTF(3, 4);
void ec2_form_number(ec2_form *form, int64_t value, const char *name, ...) SHOAL_PRINTF(3, 4);

/* An answer, or a refusal. */
typedef struct ec2_answer {
    http_request http;
    char code[CLOUD_NAME_BYTES]; /* "" unless the server refused: "InsufficientInstanceCapacity" */
    char message[2 * CLOUD_TEXT_BYTES];
    bool unknown; /* an attempt may have been done though it was not answered */
} ec2_answer;

/* Signs and sends, again and again until there is an answer or the deadline, and frees the form.  SHOAL_OK: 200.
 * Otherwise answer->code tells a refusal, and the message is set. */
int ec2_perform(ec2_answer *out, ec2 *self, ec2_form *form, int64_t deadline);
void ec2_answer_release(ec2_answer *answer);

/* ---- documents (ec2_read.c): pure ------------------------------------------------------------------------------- */

/* <Response><Errors><Error> */
void ec2_read_error(char code[CLOUD_NAME_BYTES], char message[2 * CLOUD_TEXT_BYTES], const char *text, size_t size);
/* Machines of RunInstances and DescribeInstances; *next, base_alloc'd, is the token of the next page, NULL after the
 * last. */
int ec2_read_machines(cloud_machines *out, char **next, const char *text, size_t size);
int ec2_read_prices(cloud_prices *out, char **next, const char *text, size_t size);
/* How many elements of a document have a path that ends so, and what the first of them says ("" without one). */
int ec2_read_element(char *out, size_t room, int64_t *count, const char *path, const char *text, size_t size);
/* Seconds since 1970 of "2026-11-19T21:00:00.000Z"; 0 when it is no time. */
int64_t ec2_read_time(const char *text);

#endif
