/* Addresses of stores, and what may be a key.  A URL must not contain a secret: messages and process lists show it. */
#include "store_internal.h"

#include <ctype.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"

/* ---- URLs -------------------------------------------------------------------------------------------------------- */

/* The length of the scheme without its colon; 0 for a bare path. */
static size_t scheme_length(const char *text)
{
    size_t length = 0;
    if (!islower((unsigned char)text[0]))
        return 0;
    while (islower((unsigned char)text[length]) || isdigit((unsigned char)text[length]))
        length++;
    return text[length] == ':' ? length : 0;
}

/* A URL with a signature, a key or a password is refused without being shown. */
static int refuse_secrets(const char *text)
{
    static const char *const signs[] = {"sig=", "accountkey=", "sharedaccesssignature=", "secret=", "x-amz-signature"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcasestr(text, signs[i]))
            return shoal_fail(
                SHOAL_USAGE,
                "a store's URL must not contain a secret ('%s'): other users can see command lines; credentials come "
                "from the environment",
                signs[i]);
    const char *authority = strstr(text, "://");
    size_t length = authority ? strcspn(authority + 3, "/?") : 0;
    /* A password may hold '/', so its ':' alone is enough. */
    if (authority && (memchr(authority + 3, '@', length) || memchr(authority + 3, ':', length)))
        return shoal_fail(
            SHOAL_USAGE,
            "a store's URL must not contain a user, password or port (':' or '@' before the first '/'); credentials "
            "and endpoints come from the environment");
    return SHOAL_OK;
}

/* Decodes %XX in the first `length` bytes. */
static int decode_url(char **out, const char *text, size_t length, const char *url)
{
    int status = base_alloc(out, length + 1, 1, "a URL");
    char *next = status == SHOAL_OK ? *out : NULL;
    for (size_t i = 0; i < length && status == SHOAL_OK; i++) {
        if (text[i] != '%') {
            *next++ = text[i];
            continue;
        }
        int byte = length - i > 2 ? base_hex_byte(text + i + 1) : -1;
        if (byte <= 0)
            status = shoal_fail(
                SHOAL_USAGE, "%s: '%%' must be followed by two hexadecimal digits, not 00; '%%' itself is %%25", url);
        else
            *next++ = (char)byte;
        i += 2;
    }
    return status;
}

/* Reads name=value&name=value. */
static int parse_options(store_url *url, const char *text)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && *text) {
        size_t length = strcspn(text, "&"), name = strcspn(text, "=&");
        struct store_url_option *option;
        if (name == 0 || name == length)
            return shoal_fail(SHOAL_USAGE, "%s: '%.*s' is not name=value", url->text, (int)length, text);
        status = base_grow(&url->options, url->option_count, url->option_count + 1, sizeof *option, "a URL");
        if (status < 0)
            break;
        option = &url->options[url->option_count++];
        status = decode_url(&option->name, text, name, url->text);
        if (status == SHOAL_OK)
            status = decode_url(&option->value, text + name + 1, length - name - 1, url->text);
        for (size_t i = 0; i + 1 < url->option_count && status == SHOAL_OK; i++)
            if (strcmp(url->options[i].name, option->name) == 0)
                status = shoal_fail(SHOAL_USAGE, "%s: '%s' is given twice", url->text, option->name);
        text += length;
        text += *text == '&';
    }
    return status;
}

int store_url_parse(store_url *out, const char *text)
{
    *out = (store_url){0};
    size_t scheme = scheme_length(text);
    size_t end = scheme > 0 ? scheme + 1 + strcspn(text + scheme + 1, "?") : strlen(text);
    if (!*text)
        return shoal_fail(SHOAL_USAGE, "the URL of a store is empty");
    int status = scheme > 0 ? refuse_secrets(text) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = base_copy_text(&out->text, text);
    if (status == SHOAL_OK)
        status = scheme > 0 ? base_copy_text_n(&out->scheme, text, scheme) : base_copy_text(&out->scheme, "dir");
    if (status == SHOAL_OK && scheme > 0)
        status = decode_url(&out->rest, text + scheme + 1, end - scheme - 1, text);
    else if (status == SHOAL_OK)
        status = base_copy_text(&out->rest, text);
    if (status == SHOAL_OK && text[end] == '?')
        status = parse_options(out, text + end + 1);
    if (status < 0)
        store_url_release(out);
    return status;
}

void store_url_release(store_url *url)
{
    for (size_t i = 0; i < url->option_count; i++) {
        base_free(&url->options[i].name);
        base_free(&url->options[i].value);
    }
    base_free(&url->options);
    base_free(&url->scheme);
    base_free(&url->rest);
    base_free(&url->text);
    url->option_count = 0;
}

const char *store_url_option(const store_url *url, const char *name)
{
    for (size_t i = 0; i < url->option_count; i++)
        if (strcmp(url->options[i].name, name) == 0)
            return url->options[i].value;
    return NULL;
}

int store_url_check_options(const store_url *url, const char *const *known)
{
    for (size_t i = 0; i < url->option_count; i++) {
        const char *const *name = known;
        while (*name && strcmp(*name, url->options[i].name) != 0)
            name++;
        if (!*name)
            return shoal_fail(SHOAL_USAGE, "%s: unknown option '%s' for this kind of store", url->text,
                              url->options[i].name);
    }
    return SHOAL_OK;
}

/* ---- where a URL leads ------------------------------------------------------------------------------------------- */

/* Steps to the next segment of a path and returns its length; 0 at the end. */
static size_t next_segment(const char **at)
{
    *at += strspn(*at, "/");
    return strcspn(*at, "/");
}

static bool is_dots(const char *segment, size_t length)
{
    return length <= 2 && strspn(segment, ".") >= length;
}

static bool rest_is_below(const char *rest, const char *root)
{
    size_t length, wanted, segments = 0;
    for (; (wanted = next_segment(&root)) > 0; rest += length, root += wanted, segments++) {
        length = next_segment(&rest);
        if (length != wanted || memcmp(rest, root, length) != 0 || is_dots(rest, length))
            return false;
    }
    for (; (length = next_segment(&rest)) > 0; rest += length)
        if (is_dots(rest, length))
            return false;
    return segments > 0;
}

int shoal_store_url_is_below(bool *out, const char *url, const char *root)
{
    store_url parsed = {0}, other = {0};
    int status = store_url_parse(&parsed, url);
    if (status == SHOAL_OK)
        status = store_url_parse(&other, root);
    *out = status == SHOAL_OK && strcmp(parsed.scheme, other.scheme) == 0 && rest_is_below(parsed.rest, other.rest);
    store_url_release(&parsed);
    store_url_release(&other);
    return status;
}

int shoal_store_url_folder(char **out, const char *url)
{
    store_url parsed = {0};
    *out = NULL;
    int status = store_url_parse(&parsed, url);
    if (status == SHOAL_OK && strcmp(parsed.scheme, "dir") == 0)
        status = base_copy_text(out, parsed.rest);
    store_url_release(&parsed);
    return status;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* The bytes of the character that starts here; 0 if it is not UTF-8, or a control character, or one that XML lacks. */
static size_t character_bytes(const unsigned char *text)
{
    uint32_t code = text[0];
    size_t length = code < 0x80 ? 1 : code >= 0xc2 && code < 0xe0 ? 2 : code >= 0xe0 && code < 0xf0 ? 3 : 4;
    static const uint32_t least[] = {0, 0x20, 0xa0, 0x800, 0x10000};
    if (code >= 0x80 && (code < 0xc2 || code > 0xf4))
        return 0;
    code &= length == 1 ? 0x7f : 0x7fu >> length;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool refused = code < least[length] || code == 0x7f || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
                   (code & 0xfffe) == 0xfffe;
    return refused ? 0 : length;
}

/* Checks the start of a key; `whole` when it is all of it. */
static int check_key_text(const char *key, bool whole)
{
    static const char own[] = ".shoal";
    size_t length = 0;
    char before = '/';
    for (const char *next = key; *next; next += length) {
        length = character_bytes((const unsigned char *)next);
        if (length == 0)
            return shoal_fail(SHOAL_USAGE, "the key '%s' contains a control character or invalid UTF-8 at byte %zu",
                              key, (size_t)(next - key) + 1);
        if (*next == '/' && (before == '/' || before == '.'))
            return shoal_fail(SHOAL_USAGE, "the key '%s' has a segment that is empty or ends with a dot", key);
        before = *next;
        if ((size_t)(next - key) + length > SHOAL_KEY_MOST)
            return shoal_fail(SHOAL_USAGE, "the key '%.40s...' is longer than %d bytes", key, SHOAL_KEY_MOST);
    }
    if (whole && !*key)
        return shoal_fail(SHOAL_USAGE, "the key is empty");
    if (whole && (before == '/' || before == '.'))
        return shoal_fail(SHOAL_USAGE, "the key '%s' has a segment that is empty or ends with a dot", key);
    if (strncmp(key, own, sizeof own - 1) == 0 && (key[sizeof own - 1] == '/' || key[sizeof own - 1] == '\0'))
        return shoal_fail(SHOAL_USAGE, "the key '%s' is below .shoal, which is reserved for the store", key);
    return SHOAL_OK;
}

int store_key_check(const char *key)
{
    return check_key_text(key, true);
}

int store_prefix_check(const char *prefix)
{
    return check_key_text(prefix, false);
}
