/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/build_id.h"
#include "qdq/quantize.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

const char *
qdq_version(void)
{
    return PACKAGE_VERSION;
}

/* --- the build id, which the linker writes into a note ------------------------ */

struct wanted {
    uintptr_t at; /* an address in the object that is looked for */
    char *to;
};

/* Writes the digits of the build id among the notes of a segment, if it is there. */
static void
read_notes(const unsigned char *notes, size_t size, char *to)
{
    static const char hex[] = "0123456789abcdef", owner[] = "GNU";
    ElfW(Nhdr) note;
    while (size >= sizeof note) {
        memcpy(&note, notes, sizeof note);
        size_t name = (note.n_namesz + 3u) & ~3u, data = (note.n_descsz + 3u) & ~3u;
        if (name > size - sizeof note || data > size - sizeof note - name)
            return;
        const unsigned char *bytes = notes + sizeof note + name;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof owner &&
            !memcmp(notes + sizeof note, owner, sizeof owner) &&
            note.n_descsz <= QDQI_BUILD_ID_BYTES) {
            for (size_t i = 0; i < note.n_descsz; i++) {
                *to++ = hex[bytes[i] >> 4];
                *to++ = hex[bytes[i] & 15];
            }
            *to = '\0';
            return;
        }
        notes = bytes + data;
        size -= sizeof note + name + data;
    }
}

/* Looks at one loaded object. Returns 1, which ends the search, at the one with the address. */
static int
look_at(struct dl_phdr_info *object, size_t size, void *arg)
{
    const struct wanted *wanted = arg;
    bool is_here = false;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        is_here |= p->p_type == PT_LOAD &&
                   wanted->at - (object->dlpi_addr + p->p_vaddr) < p->p_memsz;
    }
    for (int i = 0; is_here && !*wanted->to && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        const uintptr_t at = object->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_NOTE)
            read_notes((const unsigned char *)at, p->p_memsz, wanted->to);
    }
    return is_here;
}

void
qdqi_build_id(char ret[QDQI_BUILD_ID_SIZE])
{
    struct wanted wanted = {(uintptr_t)&qdqi_build_id, ret};
    ret[0] = '\0';
    dl_iterate_phdr(look_at, &wanted);
}
