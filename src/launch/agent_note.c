/* Notes between the agent and its starter.  See agent_note.h.  Nothing that the other side should send is assumed to be
 * there. */
#include "launch/agent_note.h"

#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

json_t *agent_note_read(const char *text)
{
    json_t *note = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(note)) {
        json_decref(note);
        return NULL;
    }
    return note;
}

const char *agent_note_text(const json_t *note, const char *name)
{
    const char *text = json_string_value(json_object_get(note, name));
    return text ? text : "";
}

int64_t agent_note_count(const json_t *note, const char *name)
{
    return json_integer_value(json_object_get(note, name));
}

double agent_note_real(const json_t *note, const char *name)
{
    return json_number_value(json_object_get(note, name));
}

uint64_t agent_note_worker(const json_t *note)
{
    return strtoull(agent_note_text(note, "worker"), NULL, 16);
}

int agent_note_tell(json_t *note, int (*tell)(void *link, const char *text), void *link)
{
    char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;
    int status = text ? tell(link, text) : shoal_fail(SHOAL_MEMORY, "out of memory for a note");
    free(text);
    json_decref(note);
    return status;
}

json_t *agent_note_string(const char *text)
{
    json_t *string = json_string(text);
    char *copy = NULL;
    if (string || base_copy_text(&copy, text) < 0)
        return string;
    for (char *c = copy; *c; c++) /* bytes that may not be UTF-8 */
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    string = json_string(copy);
    base_free(&copy);
    return string;
}
