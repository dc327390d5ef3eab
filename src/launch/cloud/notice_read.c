/* What clouds' notices say.  See notice.h.
 *
 * Each function sets `why` to "" when the machine stays.  Texts of the documents are cut, and what is not printable in
 * them is left out, since they go to logs. */
#include "notice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>
#include <shoal/error.h>

/* At most some of a text, without what could speak to a terminal. */
static const char *clean_text(char *out, size_t room, const char *text)
{
    size_t used = 0;
    for (const char *c = text; *c && used + 1 < room; c++)
        if (isprint((unsigned char)*c))
            out[used++] = *c;
    out[used] = '\0';
    return out;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

int cloud_notice_read_aws(char why[CLOUD_NOTICE_BYTES], const char *text, size_t size)
{
    char action[32], time[40];
    json_t *document = json_loadb(text, size, 0, NULL);
    *why = '\0';
    if (!json_is_object(document) || !*text_of(document, "action")) {
        json_decref(document);
        return shoal_fail(SHOAL_BROKEN, "the metadata service's instance-action has no action");
    }
    snprintf(why, CLOUD_NOTICE_BYTES, "spot interruption: %s at %s",
             clean_text(action, sizeof action, text_of(document, "action")),
             clean_text(time, sizeof time, text_of(document, "time")));
    json_decref(document);
    return SHOAL_OK;
}

static bool names_machine(const json_t *resources, const char *own)
{
    size_t i;
    json_t *name;
    json_array_foreach(resources, i,
                       name) if (json_is_string(name) && strcasecmp(json_string_value(name), own) == 0) return true;
    return false;
}

/* Freezing pauses a machine for some seconds, and is over sooner than another could take its place. */
static bool ends_machine(const char *type)
{
    static const char *const types[] = {"Preempt", "Terminate", "Redeploy", "Reboot"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

int cloud_notice_read_azure(char why[CLOUD_NOTICE_BYTES], const char *text, size_t size, const char *own)
{
    char type[32], time[48];
    size_t i;
    json_t *event, *document = json_loadb(text, size, 0, NULL), *events = json_object_get(document, "Events");
    *why = '\0';
    if (!json_is_array(events)) {
        json_decref(document);
        return shoal_fail(SHOAL_BROKEN, "the metadata service's scheduledevents has no Events");
    }
    json_array_foreach(events, i, event) if (ends_machine(text_of(event, "EventType")) &&
                                             names_machine(json_object_get(event, "Resources"), own) &&
                                             strcmp(text_of(event, "EventStatus"), "Completed") != 0 && !*why)
        snprintf(why, CLOUD_NOTICE_BYTES, "scheduled event: %s not before %s",
                 clean_text(type, sizeof type, text_of(event, "EventType")),
                 clean_text(time, sizeof time, text_of(event, "NotBefore")));
    json_decref(document);
    return SHOAL_OK;
}

int cloud_notice_read_gcp(char why[CLOUD_NOTICE_BYTES], const char *text, size_t size)
{
    while (size > 0 && isspace((unsigned char)text[size - 1]))
        size--;
    *why = '\0';
    if (size == 4 && memcmp(text, "TRUE", 4) == 0)
        snprintf(why, CLOUD_NOTICE_BYTES, "preempted");
    else if (size != 5 || memcmp(text, "FALSE", 5) != 0)
        return shoal_fail(SHOAL_BROKEN, "the metadata service's preempted is neither TRUE nor FALSE");
    return SHOAL_OK;
}
