/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libpng that engine/files/images/png.c calls. */
#include "config.h"
#include "ondemand.h"

#include <png.h>

#define PNG_CALL(type, failure, name, parameters, arguments) \
    ON_DEMAND(SONAME_PNG, type, failure, name, parameters, arguments)
#define PNG_VOID(name, parameters, arguments) \
    ON_DEMAND_VOID(SONAME_PNG, name, parameters, arguments)

PNG_CALL(png_structp, NULL, png_create_read_struct,
         (png_const_charp version, png_voidp arg, png_error_ptr fail,
          png_error_ptr warn),
         (version, arg, fail, warn))
PNG_CALL(png_infop, NULL, png_create_info_struct, (png_const_structrp png), (png))
PNG_VOID(png_destroy_read_struct, (png_structpp png, png_infopp info, png_infopp end),
         (png, info, end))
PNG_CALL(png_voidp, NULL, png_get_error_ptr, (png_const_structrp png), (png))
PNG_CALL(png_voidp, NULL, png_get_io_ptr, (png_const_structrp png), (png))
PNG_VOID(png_set_read_fn, (png_structrp png, png_voidp arg, png_rw_ptr fn),
         (png, arg, fn))
PNG_VOID(png_set_user_limits, (png_structrp png, png_uint_32 width, png_uint_32 height),
         (png, width, height))
PNG_VOID(png_set_chunk_malloc_max, (png_structrp png, png_alloc_size_t most),
         (png, most))

PNG_VOID(png_set_palette_to_rgb, (png_structrp png), (png))
PNG_VOID(png_set_expand_gray_1_2_4_to_8, (png_structrp png), (png))
PNG_VOID(png_set_strip_16, (png_structrp png), (png))
PNG_VOID(png_set_strip_alpha, (png_structrp png), (png))
PNG_CALL(int, 1, png_set_interlace_handling, (png_structrp png), (png))

PNG_VOID(png_read_info, (png_structrp png, png_inforp info), (png, info))
PNG_VOID(png_read_update_info, (png_structrp png, png_inforp info), (png, info))
PNG_VOID(png_read_row, (png_structrp png, png_bytep row, png_bytep shown),
         (png, row, shown))
PNG_VOID(png_read_end, (png_structrp png, png_inforp info), (png, info))
PNG_CALL(png_byte, 0, png_get_color_type,
         (png_const_structrp png, png_const_inforp info), (png, info))
PNG_CALL(png_byte, 0, png_get_channels, (png_const_structrp png, png_const_inforp info),
         (png, info))
PNG_CALL(png_uint_32, 0, png_get_image_width,
         (png_const_structrp png, png_const_inforp info), (png, info))
PNG_CALL(png_uint_32, 0, png_get_image_height,
         (png_const_structrp png, png_const_inforp info), (png, info))
PNG_CALL(size_t, 0, png_get_rowbytes, (png_const_structrp png, png_const_inforp info),
         (png, info))
