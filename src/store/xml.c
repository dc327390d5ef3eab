/* Small XML documents, by expat.  See xml.h.
 *
 * Documents come from a server, so nothing in them is trusted: a document type is refused outright, since it is where
 * entities that grow without bound or name files are declared, and depth and the length of names are bounded. */
#include "xml.h"

#include <expat.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

enum { DEPTH_MOST = 16, PATH_MOST = 512 };

typedef struct reading {
    XML_Parser parser;
    xml_reader *reader;
    void *context;
    int status;
    bool refused; /* we stopped it, with a message set */
    int depth;
    size_t path_length[DEPTH_MOST + 1]; /* of the path above each level */
    bool has_children[DEPTH_MOST + 1];
    char path[PATH_MOST];
    char *text; /* of the innermost element so far */
    size_t length, room;
} reading;

static void stop(reading *r, int status)
{
    r->status = status;
    r->refused = true;
    XML_StopParser(r->parser, XML_FALSE);
}

static void XMLCALL begin(void *context, const XML_Char *name, const XML_Char **attributes)
{
    static const char mark[] = "@Encoded";
    reading *r = context;
    if (r->refused)
        return;
    size_t above = r->depth ? r->path_length[r->depth] : 0, length = strlen(name);
    if (r->depth == DEPTH_MOST || above + length + sizeof mark + 1 > PATH_MOST) {
        stop(r, shoal_fail(SHOAL_BROKEN, "an XML answer is nested too deeply or has names that are too long"));
        return;
    }
    r->has_children[r->depth++] = true;
    r->has_children[r->depth] = false;
    if (above)
        r->path[above++] = '/';
    memcpy(r->path + above, name, length + 1);
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], "Encoded") == 0 && strcmp(attributes[1], "true") == 0) {
            memcpy(r->path + above + length, mark, sizeof mark);
            length += sizeof mark - 1;
            break;
        }
    r->path_length[r->depth] = above + length;
    r->length = 0;
}

static void XMLCALL end(void *context, const XML_Char *name)
{
    reading *r = context;
    (void)name;
    if (r->refused)
        return;
    const char *text = r->length ? r->text : "";
    int status = r->has_children[r->depth] ? r->reader(r->context, r->path, NULL, 0)
                                           : r->reader(r->context, r->path, text, r->length);
    r->path[r->path_length[--r->depth]] = 0;
    r->length = 0;
    if (status < 0)
        stop(r, status);
}

static void XMLCALL add_text(void *context, const XML_Char *bytes, int count)
{
    reading *r = context;
    if (r->refused)
        return;
    size_t wanted = r->length + (size_t)count; /* no more than the document, which is in memory */
    if (wanted > r->room) {
        size_t room = wanted * 2 + 256;
        int status = r->text ? base_grow(&r->text, r->room + 1, room + 1, 1, "a text in XML")
                             : base_alloc(&r->text, room + 1, 1, "a text in XML");
        if (status < 0) {
            stop(r, status);
            return;
        }
        r->room = room;
    }
    memcpy(r->text + r->length, bytes, (size_t)count);
    r->length = wanted;
    r->text[r->length] = 0;
}

static void XMLCALL refuse_document_type(void *context, const XML_Char *name, const XML_Char *system,
                                         const XML_Char *public, int internal)
{
    (void)name;
    (void)system;
    (void)public;
    (void)internal;
    stop(context, shoal_fail(SHOAL_BROKEN, "an XML answer declares a document type, which no store does"));
}

int xml_read(const char *document, size_t size, xml_reader *reader, void *context)
{
    reading r = {.reader = reader, .context = context};
    if (size > INT32_MAX / 2)
        return shoal_fail(SHOAL_BROKEN, "an XML answer of %zu bytes is too long", size);
    /* S3 sends white space while it is still at work, and some servers send it before the declaration. */
    while (size > 0 && strchr(" \t\r\n", *document) && *document) {
        document++;
        size--;
    }
    r.parser = XML_ParserCreate("UTF-8"); /* whatever it claims: stores send UTF-8 */
    if (!r.parser)
        return shoal_fail(SHOAL_MEMORY, "out of memory for reading XML");
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, begin, end);
    XML_SetCharacterDataHandler(r.parser, add_text);
    XML_SetStartDoctypeDeclHandler(r.parser, refuse_document_type);
    if (XML_Parse(r.parser, document, (int)size, 1) != XML_STATUS_OK && !r.refused) {
        enum XML_Error error = XML_GetErrorCode(r.parser);
        r.status = error == XML_ERROR_NO_MEMORY
                       ? shoal_fail(SHOAL_MEMORY, "out of memory for reading XML")
                       : shoal_fail(SHOAL_BROKEN, "an answer is not XML: %s, line %lu", XML_ErrorString(error),
                                    (unsigned long)XML_GetCurrentLineNumber(r.parser));
    }
    XML_ParserFree(r.parser);
    base_free(&r.text);
    return r.status;
}
