/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libjpeg that engine/files/images/jpeg.c calls. */
#include "config.h"
#include "ondemand.h"

#include <stdio.h>

#include <jpeglib.h>

ON_DEMAND(SONAME_JPEG, struct jpeg_error_mgr *, NULL, jpeg_std_error,
          (struct jpeg_error_mgr * errors), (errors))
ON_DEMAND_VOID(SONAME_JPEG, jpeg_CreateDecompress,
               (j_decompress_ptr info, int version, size_t size), (info, version, size))
ON_DEMAND_VOID(SONAME_JPEG, jpeg_destroy_decompress, (j_decompress_ptr info), (info))
ON_DEMAND_VOID(SONAME_JPEG, jpeg_mem_src,
               (j_decompress_ptr info, const unsigned char *from, unsigned long size),
               (info, from, size))
ON_DEMAND(SONAME_JPEG, int, JPEG_SUSPENDED, jpeg_read_header,
          (j_decompress_ptr info, boolean image), (info, image))
ON_DEMAND(SONAME_JPEG, boolean, FALSE, jpeg_start_decompress, (j_decompress_ptr info),
          (info))
ON_DEMAND(SONAME_JPEG, JDIMENSION, 0, jpeg_read_scanlines,
          (j_decompress_ptr info, JSAMPARRAY rows, JDIMENSION n), (info, rows, n))
ON_DEMAND(SONAME_JPEG, boolean, FALSE, jpeg_finish_decompress, (j_decompress_ptr info),
          (info))
