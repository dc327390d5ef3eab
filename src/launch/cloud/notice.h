/* Whether the cloud is about to take this machine away, as its metadata service tells it.
 *
 *     cloud_notice *notice = NULL;
 *     int status = cloud_notice_start(&notice, "auto", say, context);
 *     ... cloud_notice_given(notice) ...                          // NULL, or why the machine goes; costs nothing
 *     cloud_notice_stop(&notice);
 *
 * A thread asks once a second.  Amazon's is asked by IMDSv2 alone, whose token is renewed when it is refused. */
#ifndef CLOUD_NOTICE_H
#define CLOUD_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cloud_notice cloud_notice;

/* Whether `name` is one of auto, aws, azure and gcp. */
bool cloud_notice_is_known(const char *name);

/* auto finds out which cloud this is, and gives up after a few seconds when it is none.  `say` is told from the thread
 * what people should know: that nobody answers, say. */
int cloud_notice_start(cloud_notice **out, const char *name, void (*say)(void *context, const char *line),
                       void *context);
/* Why the machine goes ("spot interruption: terminate at 2026-11-19T21:00:00Z"), or NULL. */
const char *cloud_notice_given(const cloud_notice *self);
/* Accepts a NULL inside. */
void cloud_notice_stop(cloud_notice **self);

/* What documents say: whether they tell this machine to go, and why.  For tests, too: all of it comes from elsewhere,
 * and SHOAL_BROKEN is what it is when it is not what the cloud promises. */
enum { CLOUD_NOTICE_BYTES = 160 };
int cloud_notice_read_aws(char why[CLOUD_NOTICE_BYTES], const char *text, size_t size);
/* Events name the machines they are about; `own` is this one's. */
int cloud_notice_read_azure(char why[CLOUD_NOTICE_BYTES], const char *text, size_t size, const char *own);
int cloud_notice_read_gcp(char why[CLOUD_NOTICE_BYTES], const char *text, size_t size);

#endif
