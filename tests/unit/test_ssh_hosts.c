/* Lists of hosts and commands: what is understood, and the sentence for everything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "launch/ssh_hosts.h"

static void test_hosts(void **state)
{
    static const struct {
        const char *text;
        int count;
        ssh_host host[3];
    } good[] = {
        {"corn10", 1, {{"corn10", 1}}},
        {"corn10,me@corn11:8,[::1]:2", 3, {{"corn10", 1}, {"me@corn11", 8}, {"::1", 2}}},
        {"me@[fe80::1%eth0]", 1, {{"me@fe80::1%eth0", 1}}},
        {"a.b-c_d:4096,10.0.0.1:1e2", 2, {{"a.b-c_d", 4096}, {"10.0.0.1", 100}}},
        {"first@x,second@x", 2, {{"first@x", 1}, {"second@x", 1}}},
        {"me@corp.example@gate:3", 1, {{"me@corp.example@gate", 3}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ssh_host *hosts = NULL;
        int count = 0;
        if (ssh_hosts_parse(&hosts, &count, good[i].text) < 0)
            fail_msg("%s: %s", good[i].text, shoal_error());
        assert_int_equal(count, good[i].count);
        for (int j = 0; j < count; j++) {
            assert_string_equal(hosts[j].target, good[i].host[j].target);
            assert_int_equal(hosts[j].workers, good[i].host[j].workers);
        }
        base_free(&hosts);
    }
}

static void test_no_hosts(void **state)
{
    /* What is wrong, and what the sentence must have. */
    static const char *const wrong[][2] = {
        {"", "a host is missing"},
        {"a,,b", "a host is missing"},
        {"a,", "a host is missing"},
        {":3", "':3' is not a host"},
        {"-oProxyCommand=x", "is not a host"},
        {"me@-oProxyCommand=x", "is not a host"},
        {"-x@a", "is not a host"},
        {"a b", "is not a host"},
        {"a;b", "is not a host"},
        {"$(b)", "is not a host"},
        {"a`b", "is not a host"},
        {"a/b", "is not a host"},
        {"a\nb", "is not a host"},
        {"@a", "user name"},
        {"m e@a", "user name"},
        {"a:", "'' should be a number of workers"},
        {"a:0", "'0' should be a number of workers from 1 to 4096"},
        {"a:22022", "'22022' should be a number of workers from 1 to 4096; ports go into ssh's configuration"},
        {"a:-1", "'-1' should"},
        {"a:4097", "'4097' should"},
        {"a:x", "'x' should"},
        {"a:11111111111111111111111111111", "has no number"},
        {"::1", "goes into brackets"},
        {"fe80::1:2", "goes into brackets"},
        {"[::1", "has no ']'"},
        {"[::1]x", "has more after the ']'"},
        {"[]", "is not a host"},
        {"a,b,a:2", "a is there twice; use a:3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ssh_host *hosts = NULL;
        int count = 7;
        assert_int_equal(ssh_hosts_parse(&hosts, &count, wrong[i][0]), SHOAL_USAGE);
        assert_null(hosts);
        assert_int_equal(count, 0);
        if (!strstr(shoal_error(), wrong[i][1]))
            fail_msg("'%s': '%s' says nothing of '%s'", wrong[i][0], shoal_error(), wrong[i][1]);
    }
}

static void test_too_long(void **state)
{
    char text[400];
    ssh_host *hosts = NULL;
    int count = 0;
    (void)state;
    memset(text, 'a', sizeof text);
    text[SSH_TARGET_BYTES - 1 - strlen("m@")] = '\0';
    memcpy(text, "m@", 2);
    assert_int_equal(ssh_hosts_parse(&hosts, &count, text), SHOAL_OK);
    base_free(&hosts);
    memset(text, 'a', sizeof text);
    text[SSH_TARGET_BYTES] = '\0';
    memcpy(text, "m@", 2);
    assert_int_equal(ssh_hosts_parse(&hosts, &count, text), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "too long"));
}

static void test_too_many(void **state)
{
    char text[8 * (SSH_HOSTS_MOST + 2)];
    size_t length = 0;
    ssh_host *hosts = NULL;
    int count = 0;
    (void)state;
    for (int i = 0; i <= SSH_HOSTS_MOST; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%sh%d", i ? "," : "", i);
    assert_int_equal(ssh_hosts_parse(&hosts, &count, text), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "1025 hosts"));
}

static void test_words(void **state)
{
    static const struct {
        const char *command;
        int count;
        const char *word[4];
    } good[] = {
        {"ssh", 1, {"ssh"}},
        {"  ssh\t-F  'a file' ", 3, {"ssh", "-F", "a file"}},
        {"ssh -o \"a \\\"b\\\" \\c\"", 3, {"ssh", "-o", "a \"b\" \\c"}},
        {"a\\ b '' c\"d e\"f", 3, {"a b", "", "cd ef"}},
        {"$(x) `y` ~ *", 4, {"$(x)", "`y`", "~", "*"}},
        {"'it'\\''s'", 1, {"it's"}},
        {"end\\", 1, {"end\\"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ssh_words words;
        if (ssh_words_split(&words, good[i].command) < 0)
            fail_msg("%s: %s", good[i].command, shoal_error());
        assert_int_equal(words.count, good[i].count);
        for (int j = 0; j < words.count; j++)
            assert_string_equal(words.word[j], good[i].word[j]);
        assert_null(words.word[words.count]);
        ssh_words_release(&words);
    }
}

static void test_no_words(void **state)
{
    char many[3 * (SSH_WORDS_MOST + 1) + 1] = "";
    ssh_words words;
    (void)state;
    assert_int_equal(ssh_words_split(&words, " \t"), SHOAL_USAGE);
    assert_int_equal(ssh_words_split(&words, "ssh 'a"), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "a quote has no end"));
    assert_int_equal(ssh_words_split(&words, "ssh \"a"), SHOAL_USAGE);
    for (int i = 0; i <= SSH_WORDS_MOST; i++)
        strcat(many, "w ");
    assert_int_equal(ssh_words_split(&words, many), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "more than 64 words"));
}

/* Every allocation that fails is an error, and nothing is lost. */
static void test_memory(void **state)
{
    (void)state;
    for (int64_t n = 0;; n++) {
        ssh_host *hosts = NULL;
        ssh_words words = {0};
        int count = 0;
        base_memory_fail_after(n);
        int status = ssh_hosts_parse(&hosts, &count, "a,b:2");
        if (status == SHOAL_OK)
            status = ssh_words_split(&words, "ssh -v");
        base_memory_fail_after(-1);
        base_free(&hosts);
        ssh_words_release(&words);
        if (status == SHOAL_OK)
            return;
        assert_int_equal(status, SHOAL_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),    cmocka_unit_test(test_no_hosts), cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_too_many), cmocka_unit_test(test_words),    cmocka_unit_test(test_no_words),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
