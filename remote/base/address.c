/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

/* Networks that are not public, by the registries of special-purpose addresses (IANA). */
static const struct {
    uint32_t net;
    int bits;
} v4_nets[] = {
    {0x00000000, 8},  /* this network */
    {0x0a000000, 8},  /* private */
    {0x64400000, 10}, /* shared by carriers */
    {0x7f000000, 8},  /* loopback */
    {0xa9fe0000, 16}, /* link-local, and clouds' metadata */
    {0xac100000, 12}, /* private */
    {0xc0000000, 24}, /* protocols */
    {0xc0000200, 24}, /* documentation */
    {0xc0586300, 24}, /* relays of 6to4 */
    {0xc0a80000, 16}, /* private */
    {0xc6120000, 15}, /* benchmarks */
    {0xc6336400, 24}, /* documentation */
    {0xcb007100, 24}, /* documentation */
    {0xe0000000, 3},  /* multicast and reserved */
};

static bool
is_public_v4(const unsigned char bytes[4])
{
    uint32_t address = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
                       (uint32_t)bytes[2] << 8 | bytes[3];
    for (size_t i = 0; i < sizeof v4_nets / sizeof *v4_nets; i++)
        if ((address ^ v4_nets[i].net) >> (32 - v4_nets[i].bits) == 0)
            return false;
    return true;
}

static bool
has_prefix(const unsigned char *address, const char *prefix)
{
    struct in6_addr bytes;
    int bits = 0;
    char text[INET6_ADDRSTRLEN];
    size_t len = strcspn(prefix, "/");
    memcpy(text, prefix, len);
    text[len] = '\0';
    for (const char *digit = prefix + len + 1; *digit; digit++)
        bits = bits * 10 + (*digit - '0');
    if (inet_pton(AF_INET6, text, &bytes) != 1 ||
        memcmp(address, bytes.s6_addr, (size_t)bits / 8) != 0)
        return false;
    int rest = bits % 8;
    return !rest || (address[bits / 8] ^ bytes.s6_addr[bits / 8]) >> (8 - rest) == 0;
}

/* IPv6 networks that hold an IPv4 address, from which byte on. */
static const struct {
    const char *prefix;
    int at;
} v4_inside[] = {
    {"::ffff:0:0/96", 12},
    {"::ffff:0:0:0/96", 12},
    {"64:ff9b::/96", 12},
    {"2002::/16", 2},
};

static bool
is_public_v6(const unsigned char address[16])
{
    for (size_t i = 0; i < sizeof v4_inside / sizeof *v4_inside; i++)
        if (has_prefix(address, v4_inside[i].prefix))
            return is_public_v4(address + v4_inside[i].at);
    /* Global unicast is 2000::/3; Teredo, other protocols and documentation lie in it. */
    return has_prefix(address, "2000::/3") && !has_prefix(address, "2001::/23") &&
           !has_prefix(address, "2001:db8::/32") && !has_prefix(address, "3fff::/20");
}

bool
address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        return is_public_v4((const unsigned char *)&v4.sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        return is_public_v6(v6.sin6_addr.s6_addr);
    }
    return false;
}
