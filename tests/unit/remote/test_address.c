/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses a remote without allow_private may have. */
#include "config.h"
#include "base/address.h"
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

static const struct {
    const char *text;
    bool is_public;
} rows[] = {
    {"8.8.8.8", true},
    {"1.1.1.1", true},
    {"100.63.255.255", true},
    {"172.15.255.255", true},
    {"172.32.0.0", true},
    {"192.167.255.255", true},
    {"223.255.255.255", true},
    {"0.0.0.0", false},
    {"0.1.2.3", false},
    {"10.0.0.1", false},
    {"100.64.0.1", false},
    {"127.0.0.1", false},
    {"127.255.255.254", false},
    {"169.254.169.254", false},
    {"172.16.0.1", false},
    {"172.31.255.255", false},
    {"192.168.1.1", false},
    {"198.18.0.1", false},
    {"203.0.113.7", false},
    {"224.0.0.1", false},
    {"255.255.255.255", false},
    {"2606:4700:4700::1111", true},
    {"2a00:1450:4001::8a", true},
    {"::ffff:8.8.8.8", true},
    {"64:ff9b::8.8.8.8", true},
    {"2002:808:808::1", true},
    {"::", false},
    {"::1", false},
    {"::127.0.0.1", false},
    {"::ffff:127.0.0.1", false},
    {"::ffff:10.0.0.1", false},
    {"::ffff:169.254.169.254", false},
    {"::ffff:0:127.0.0.1", false},
    {"64:ff9b::127.0.0.1", false},
    {"64:ff9b:1::8.8.8.8", false},
    {"2002:7f00:1::", false},
    {"2002:c0a8:101::1", false},
    {"2001:0:1:2:3:4:5:6", false},
    {"2001:db8::1", false},
    {"fc00::1", false},
    {"fd12:3456::1", false},
    {"fe80::1", false},
    {"fec0::1", false},
    {"ff02::1", false},
};

UNIT_ROWS(addresses, rows)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const struct sockaddr *address = (const struct sockaddr *)&v4;
    if (inet_pton(AF_INET, rows[_i].text, &v4.sin_addr) != 1) {
        ck_assert_int_eq(inet_pton(AF_INET6, rows[_i].text, &v6.sin6_addr), 1);
        address = (const struct sockaddr *)&v6;
    }
    ck_assert_msg(address_is_public(address) == rows[_i].is_public, "%s",
                  rows[_i].text);
}

UNIT_TEST(other_families)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
    ck_assert(!address_is_public((const struct sockaddr *)&local));
}

UNIT_SUITE("address")
