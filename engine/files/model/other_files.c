/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/other_files.h"

#include <string.h>
#include <strings.h>

/* Bytes at an offset. A valid model might have some of them, too, so that only files that could not be
   parsed are looked at. */
struct signature {
    size_t at;
    const char *bytes;
    size_t n;
    const char *text;
};

#define BYTES(text) text, sizeof(text) - 1

static const struct signature signatures[] = {
    {0, BYTES("version https://git-lfs"),
     "it is a pointer of Git LFS, and the model itself was not fetched; run `git lfs "
     "pull`"},
    {0, BYTES("PK\3\4"),
     "it is a zip archive, as tf2onnx and torch.save() write them; unpack it, and send "
     "the "
     ".onnx file with its data files"},
    {4, BYTES("TFL3"), "it is a TFLite model; convert it with tf2onnx"},
    {0, BYTES("\x89HDF\r\n"), "it is an HDF5 file of Keras; export it as ONNX"},
    {0, BYTES("GGUF"), "it is a GGUF file of llama.cpp; export the model as ONNX"},
    {0, BYTES("\x1f\x8b"), "it is compressed with gzip; unpack it"},
    {0, BYTES("\x28\xb5\x2f\xfd"), "it is compressed with zstd; unpack it"},
    {0,
     BYTES("\xfd"
           "7zXZ"),
     "it is compressed with xz; unpack it"},
    {0, BYTES("ORTM"),
     "it is a model in ONNX Runtime's own format; send the .onnx file"},
    {4, BYTES("ORTM"),
     "it is a model in ONNX Runtime's own format; send the .onnx file"},
    {0, BYTES("\x80\2"), "it is a pickle of Python; export the model as ONNX"},
    {0, BYTES("\x80\4"), "it is a pickle of Python; export the model as ONNX"},
    {0, BYTES("\x93NUMPY"), "it is an array of NumPy"},
    {0,
     BYTES("\x7f"
           "ELF"),
     "it is a program or a library"},
    {257, BYTES("ustar"),
     "it is a tar archive; unpack it, and send the .onnx file with its "
     "data files"},
};

/* Beginnings of texts, in any case, behind white space. */
static const struct {
    const char *begin, *text;
} texts[] = {
    {"<!doctype html",
     "it is a page of HTML, as a server sends one in the place of a file"},
    {"<html", "it is a page of HTML, as a server sends one in the place of a file"},
    {"<?xml",
     "it is XML, as an OpenVINO model or an answer of a server; export the model as "
     "ONNX"},
    {"{", "it is JSON"},
};

static const char *
text_file(const char *bytes, size_t size)
{
    while (size > 0 && memchr(" \t\r\n", *bytes, 4)) {
        bytes++;
        size--;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (size >= strlen(texts[i].begin) &&
            strncasecmp(bytes, texts[i].begin, strlen(texts[i].begin)) == 0)
            return texts[i].text;
    return NULL;
}

const char *
qdqi_other_file(const void *bytes, size_t size)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const struct signature *s = &signatures[i];
        if (size >= s->at + s->n &&
            memcmp((const char *)bytes + s->at, s->bytes, s->n) == 0)
            return s->text;
    }
    return text_file(bytes, size);
}
