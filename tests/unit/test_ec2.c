/* src/launch/cloud/ec2_read.c and places: what answers say, and what is refused of them.
 * tests/system/test_cluster_ec2.py talks to a service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "launch/cloud/ec2.h"

#define MACHINE(inner)                                                                                                 \
    "<DescribeInstancesResponse><reservationSet><item><instancesSet><item>" inner                                      \
    "</item></instancesSet></item></reservationSet><nextToken>more</nextToken></DescribeInstancesResponse>"
#define PRICES(inner) "<R><spotPriceHistorySet>" inner "</spotPriceHistorySet><nextToken/></R>"

static const char whole[] = MACHINE(
    "<instanceId>i-0abc</instanceId><instanceState><code>16</code><name>running</name></instanceState>"
    "<instanceType>c7i.large</instanceType><launchTime>2026-11-19T21:00:00.000Z</launchTime>"
    "<placement><availabilityZone>eu-west-1b</availabilityZone></placement><privateIpAddress>10.0.0.7"
    "</privateIpAddress><ipAddress>192.0.2.1</ipAddress><instanceLifecycle>spot</instanceLifecycle>"
    "<tagSet><item><key>Name</key><value>x</value></item><item><key>shoal-cluster</key><value>on\033e</value></item>"
    "<item><value>00ff</value><key>shoal-reservation</key></item></tagSet>"
    "<stateReason><code>A</code><message>because</message></stateReason>");

static int read_machines(cloud_machines *out, char **next, const char *text)
{
    *out = (cloud_machines){0};
    *next = NULL;
    return ec2_read_machines(out, next, text, strlen(text));
}

static void a_machine_is_read(void **state)
{
    cloud_machines found;
    char *next, clean[sizeof whole];
    (void)state;
    memcpy(clean, whole, sizeof clean);
    assert_int_equal(read_machines(&found, &next, clean), SHOAL_BROKEN); /* a control character is no XML */
    cloud_machines_release(&found);
    base_free(&next);
    *strchr(clean, '\033') = 'n';
    assert_int_equal(read_machines(&found, &next, clean), SHOAL_OK);
    const cloud_machine *machine = found.machine;
    assert_int_equal(found.count, 1);
    assert_string_equal(machine->id, "i-0abc");
    assert_string_equal(machine->type, "c7i.large");
    assert_string_equal(machine->zone, "eu-west-1b");
    assert_string_equal(machine->address, "192.0.2.1");
    assert_string_equal(machine->cluster, "onne");
    assert_string_equal(machine->reservation, "00ff");
    assert_string_equal(machine->reason, "because");
    assert_int_equal(machine->state, CLOUD_RUNNING);
    assert_int_equal(machine->market, CLOUD_SPOT);
    assert_int_equal(machine->launched, 1795122000);
    assert_string_equal(next, "more");
    cloud_machines_release(&found);
    base_free(&next);
}

/* An id goes into requests and onto terminals; a state that is unknown may cost money. */
static void machines_that_can_not_be_are_refused(void **state)
{
    static const char *const bad[] = {
        MACHINE("<instanceId>i-1</instanceId>"),
        MACHINE("<instanceId/><instanceState><name>running</name></instanceState>"),
        MACHINE("<instanceId>i 1</instanceId><instanceState><name>running</name></instanceState>"),
        MACHINE("<instanceId>../1</instanceId><instanceState><name>running</name></instanceState>"),
        MACHINE("<instanceId>i-1</instanceId><instanceState><name>dreaming</name></instanceState>"),
        "",
        "<a>",
        "<!DOCTYPE a><a/>"};
    cloud_machines found;
    char *next;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_machines(&found, &next, bad[i]), SHOAL_BROKEN);
        cloud_machines_release(&found);
        base_free(&next);
    }
}

static void the_newest_price_of_a_pool_is_its_price(void **state)
{
    static const char text[] = PRICES(
        "<item><instanceType>a</instanceType><availabilityZone>z</availabilityZone><spotPrice>0.2</spotPrice>"
        "<timestamp>2026-11-19T20:00:00Z</timestamp></item>"
        "<item><instanceType>a</instanceType><availabilityZone>z</availabilityZone><spotPrice>0.3</spotPrice>"
        "<timestamp>2026-11-19T21:00:00Z</timestamp></item>"
        "<item><instanceType>a</instanceType><availabilityZone>y</availabilityZone><spotPrice>0.1</spotPrice></item>");
    static const char *const bad[] = {"-1", "0", "nan", "1e9", "9999999", "1..", "", "0x1p3", "1 ", "inf"};
    cloud_prices found = {0};
    char *next = NULL, forged[256];
    (void)state;
    assert_int_equal(ec2_read_prices(&found, &next, text, strlen(text)), SHOAL_OK);
    assert_null(next);
    assert_int_equal(found.count, 2);
    assert_true(found.price[0].dollars == 0.3 && found.price[1].dollars == 0.1);
    cloud_prices_release(&found);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(forged, sizeof forged, PRICES("<item><instanceType>a</instanceType><spotPrice>%s</spotPrice></item>"),
                 bad[i]);
        assert_int_equal(ec2_read_prices(&found, &next, forged, strlen(forged)), SHOAL_BROKEN);
        cloud_prices_release(&found);
    }
}

static void errors_and_elements(void **state)
{
    static const char error[] = "<Response><Errors><Error><Code>Throttling</Code><Message>Slow</Message></Error><Error>"
                                "<Code>B</Code></Error></Errors></Response>";
    char code[CLOUD_NAME_BYTES], message[2 * CLOUD_TEXT_BYTES];
    int64_t count = 0;
    (void)state;
    ec2_read_error(code, message, error, strlen(error));
    assert_string_equal(code, "Throttling");
    assert_string_equal(message, "Slow");
    ec2_read_error(code, message, "<html", 5);
    assert_string_equal(code, "");
    assert_int_equal(ec2_read_element(code, sizeof code, &count, "/Error/Code", error, strlen(error)), SHOAL_OK);
    assert_int_equal(count, 2);
    assert_string_equal(code, "Throttling");
    assert_int_equal(ec2_read_time("2026-11-19T21:00:00Z"), 1795122000);
    assert_int_equal(ec2_read_time("yesterday"), 0);
}

static void lists_grow(void **state)
{
    cloud_machines machines = {0};
    (void)state;
    for (int i = 0; i < 100; i++) {
        cloud_machine one = {.launched = i};
        assert_int_equal(cloud_machines_add(&machines, &one), SHOAL_OK);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(machines.machine[i].launched, i);
    cloud_machines_release(&machines);
}

/* Of a place, and of an answer. */
static void failing_memory_is_reported(void **state)
{
    (void)state;
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    int64_t n = 0;
    for (int status = SHOAL_MEMORY; status < 0; n++) {
        cloud *place = NULL;
        assert_true(n < 200);
        base_memory_fail_after(n);
        status = cloud_open(&place, "aws:eu-west-1/c7i.large");
        base_memory_fail_after(-1);
        cloud_close(&place);
    }
    assert_true(n > 3);
    char clean[sizeof whole];
    memcpy(clean, whole, sizeof clean);
    *strchr(clean, '\033') = 'n';
    n = 0;
    for (int status = SHOAL_MEMORY; status < 0; n++) {
        cloud_machines found;
        char *next;
        assert_true(n < 200);
        base_memory_fail_after(n);
        status = read_machines(&found, &next, clean);
        base_memory_fail_after(-1);
        cloud_machines_release(&found);
        base_free(&next);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_is_read),
        cmocka_unit_test(machines_that_can_not_be_are_refused),
        cmocka_unit_test(the_newest_price_of_a_pool_is_its_price),
        cmocka_unit_test(errors_and_elements),
        cmocka_unit_test(lists_grow),
        cmocka_unit_test(failing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
