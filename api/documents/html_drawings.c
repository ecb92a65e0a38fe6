/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings in SVG. */
#include "config.h"
#include "documents/html.h"

#include <math.h>

/* The size of a curve's drawing, and of the frame that its points are in. */
enum {
    WIDTH = 720,
    HEIGHT = 240,
    LEFT = 56,
    RIGHT = 12,
    TOP = 12,
    BOTTOM = 40,
    MOST_POINTS = 400, /* of more points some are left out */
    MOST_DOTS = 120,   /* of more points none has a dot */
    LINES = 5,
    STROKES = 4, /* that the style has for series of points */
};

struct frame {
    double low, high; /* of the numbers */
    size_t n;         /* of points */
};

/* Returns the number of that member in a row; NAN when there is none. */
static double
number_at(const json_t *rows, size_t i, const char *member)
{
    const json_t *value = json_object_get(json_array_get(rows, i), member);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* Takes the numbers of a member into the frame. Returns how many there are. */
static size_t
add_bounds(struct frame *frame, const json_t *rows, const char *member)
{
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double value = number_at(rows, i, member);
        if (!isfinite(value))
            continue;
        frame->low = fmin(frame->low, value);
        frame->high = fmax(frame->high, value);
        found++;
    }
    return found;
}

static void
widen(struct frame *frame)
{
    double margin = frame->high > frame->low ? 0.05 * (frame->high - frame->low) : 1;
    frame->low -= margin;
    frame->high += margin;
}

/* Returns the bounds of the numbers, a little widened. n is 0 where there are not two of them, or
   where their distance is no number. */
static struct frame
find_frame(const json_t *rows, const char *member)
{
    struct frame frame = {INFINITY, -INFINITY, json_array_size(rows)};
    if (add_bounds(&frame, rows, member) < 2 || !isfinite(2 * (frame.high - frame.low)))
        frame.n = 0;
    widen(&frame);
    return frame;
}

static double
x_of(const struct frame *frame, size_t i)
{
    return LEFT + (double)i * (WIDTH - LEFT - RIGHT) / (double)(frame->n - 1);
}

static double
y_of(const struct frame *frame, double value)
{
    double share = (value - frame->low) / (frame->high - frame->low);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

/* Adds lines at heights of the frame, with their numbers. */
static void
add_grid(struct api_markup *page, const struct frame *frame)
{
    for (int i = 0; i < LINES; i++) {
        double value = frame->low + (frame->high - frame->low) * i / (LINES - 1);
        double at = y_of(frame, value);
        api_markup_format(page,
                          "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
                          "y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                          "text-anchor=\"end\">%.3g</text>",
                          LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4, value);
    }
}

static void
add_axes(struct api_markup *page, const struct frame *frame, const char *x,
         const char *y)
{
    add_grid(page, frame);
    api_markup_format(page,
                      "<text x=\"%d\" y=\"%d\">1</text><text x=\"%d\" y=\"%d\" "
                      "text-anchor=\"end\">%zu</text><text x=\"%d\" y=\"%d\" "
                      "text-anchor=\"middle\">%s (%s upwards)</text>\n",
                      LEFT, HEIGHT - 22, WIDTH - RIGHT, HEIGHT - 22, frame->n,
                      (WIDTH + LEFT - RIGHT) / 2, HEIGHT - 6, x, y);
}

static void
add_line(struct api_markup *page, const json_t *rows, const char *member,
         const struct frame *frame)
{
    size_t step = frame->n / MOST_POINTS + 1;
    bool begun = false;
    api_markup_add(page, "<path class=\"curve\" d=\"");
    for (size_t i = 0; i < frame->n; i += step) {
        double value = number_at(rows, i, member);
        if (!isfinite(value))
            continue;
        api_markup_format(page, "%c%.1f %.1f", begun ? 'L' : 'M', x_of(frame, i),
                          y_of(frame, value));
        begun = true;
    }
    api_markup_add(page, "\"/>\n");
}

void
html_curve(struct api_markup *page, const json_t *rows, const char *member,
           const char *name, const char *x, const char *y)
{
    struct frame frame = find_frame(rows, member);
    if (!frame.n)
        return;
    api_markup_format(page,
                      "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" "
                      "aria-label=\"%s, %s; the table below has the figures\">\n",
                      WIDTH, HEIGHT, y, x);
    add_axes(page, &frame, x, y);
    add_line(page, rows, member, &frame);
    for (size_t i = 0; i < frame.n && frame.n <= MOST_DOTS; i++) {
        double value = number_at(rows, i, member);
        if (!isfinite(value))
            continue;
        api_markup_format(page, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>",
                          x_of(&frame, i), y_of(&frame, value));
        api_markup_value(page, json_object_get(json_array_get(rows, i), name));
        api_markup_format(page, ": %.4g</title></circle>", value);
    }
    api_markup_add(page, "</svg>\n");
}

/* Returns where a number stands on the axis to the right. */
static double
right_of(const struct frame *frame, double value)
{
    double share = (value - frame->low) / (frame->high - frame->low);
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

/* Adds the numbers below the drawing, and what the axes are. */
static void
add_scale(struct api_markup *page, const struct frame *frame, const char *x,
          const char *y)
{
    for (int i = 0; i < LINES; i++) {
        double value = frame->low + (frame->high - frame->low) * i / (LINES - 1);
        const char *anchor = i == 0 ? "start" : i == LINES - 1 ? "end" : "middle";
        api_markup_format(page,
                          "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%.3g</text>",
                          right_of(frame, value), HEIGHT - 22, anchor, value);
    }
    api_markup_format(page,
                      "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s (%s "
                      "upwards)</text>\n",
                      (WIDTH + LEFT - RIGHT) / 2, HEIGHT - 6, x, y);
}

/* The two members that a drawing of points has to the right and upwards, and where they stand. */
struct plane {
    const char *x, *y;
    struct frame across, up;
};

/* Returns whether a row has both numbers, and where it stands. */
static bool
find_place(const struct plane *plane, const json_t *rows, size_t i, double *ret_x,
           double *ret_y)
{
    double x = number_at(rows, i, plane->x), y = number_at(rows, i, plane->y);
    *ret_x = right_of(&plane->across, x);
    *ret_y = y_of(&plane->up, y);
    return isfinite(x) && isfinite(y);
}

static void
add_label(struct api_markup *page, double x, double y, json_t *name)
{
    bool left = x > 0.6 * WIDTH;
    api_markup_format(page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                      x + (left ? -8 : 8), y + 4, left ? "end" : "start");
    api_markup_value(page, name);
    api_markup_add(page, "</text>\n");
}

/* Adds a point, which says its name and both numbers where a pointer rests on it. */
static void
add_point(struct api_markup *page, const struct plane *plane, const json_t *rows,
          size_t i, int radius, json_t *name)
{
    double x, y;
    const json_t *anchor = json_object_get(json_array_get(rows, i), HTML_ANCHOR);
    const bool leads = json_is_integer(anchor);
    find_place(plane, rows, i, &x, &y);
    if (leads)
        api_markup_format(page, "<a href=\"#row-%lld\">",
                          (long long)json_integer_value(anchor));
    api_markup_format(page, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>", x, y,
                      radius);
    api_markup_value(page, name);
    api_markup_format(page, ": %.4g, %.4g</title></circle>",
                      number_at(rows, i, plane->x), number_at(rows, i, plane->y));
    if (leads)
        api_markup_add(page, "</a>");
}

/* Adds a line through the points that a row has besides its own, and these points. Returns whether
   there are some, and where the last one stands. */
static bool
add_frontier(struct api_markup *page, const struct plane *plane, const json_t *points,
             json_t *name, double *ret_x, double *ret_y)
{
    bool begun = false;
    double x, y;
    for (size_t i = 0; i < json_array_size(points) && i < MOST_POINTS; i++)
        if (find_place(plane, points, i, &x, &y)) {
            api_markup_format(page, "%s%.1f %.1f",
                              begun ? "L" : "<path class=\"curve\" d=\"M", x, y);
            begun = true;
            *ret_x = x;
            *ret_y = y;
        }
    if (begun)
        api_markup_add(page, "\"/>");
    for (size_t i = 0; i < json_array_size(points) && i < MOST_POINTS; i++)
        if (find_place(plane, points, i, &x, &y))
            add_point(page, plane, points, i, 3, name);
    return begun;
}

/* Adds a row's own point and its frontier, in the colour and stroke of its number. */
static void
add_series(struct api_markup *page, const struct plane *plane, const json_t *rows,
           size_t i, json_t *name)
{
    const json_t *points = json_object_get(json_array_get(rows, i), "frontier");
    double x = 0, y = 0, own_x, own_y;
    api_markup_format(page, "<g class=\"s%zu\">", i % STROKES);
    bool is_drawn = add_frontier(page, plane, points, name, &x, &y);
    bool has_own = find_place(plane, rows, i, &own_x, &own_y);
    if (has_own)
        add_point(page, plane, rows, i, 5, name);
    if (has_own || is_drawn)
        add_label(page, has_own ? own_x : x, has_own ? own_y : y, name);
    api_markup_add(page, "</g>\n");
}

/* Returns the bounds of a member in the rows and in their frontiers, a little widened. */
static struct frame
find_wide_frame(const json_t *rows, const char *member)
{
    struct frame frame = {INFINITY, -INFINITY, 0};
    frame.n = add_bounds(&frame, rows, member);
    for (size_t i = 0; i < json_array_size(rows); i++)
        frame.n += add_bounds(
            &frame, json_object_get(json_array_get(rows, i), "frontier"), member);
    if (!isfinite(2 * (frame.high - frame.low)))
        frame.n = 0;
    widen(&frame);
    return frame;
}

void
html_points(struct api_markup *page, const json_t *rows, const char *x, const char *y,
            const char *name, const char *x_title, const char *y_title)
{
    const struct plane plane = {x, y, find_wide_frame(rows, x),
                                find_wide_frame(rows, y)};
    if (plane.across.n == 0 || plane.up.n == 0) {
        html_note(page, "No result has both figures.");
        return;
    }
    api_markup_format(page,
                      "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" "
                      "aria-label=\"%s, %s; a table has the figures\">\n",
                      WIDTH, HEIGHT, y_title, x_title);
    add_grid(page, &plane.up);
    add_scale(page, &plane.across, x_title, y_title);
    for (size_t i = 0; i < json_array_size(rows) && i < MOST_POINTS; i++)
        add_series(page, &plane, rows, i,
                   json_object_get(json_array_get(rows, i), name));
    api_markup_add(page, "</svg>\n");
}

/* Takes the numbers at a place of all pairs into the frame. */
static void
add_pairs(struct frame *frame, const json_t *pairs, size_t place)
{
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *value = json_array_get(json_array_get(pairs, i), place);
        frame->low = fmin(frame->low, json_number_value(value));
        frame->high = fmax(frame->high, json_number_value(value));
    }
}

void
html_pairs(struct api_markup *page, const json_t *pairs, const char *x, const char *y)
{
    struct frame frame = {INFINITY, -INFINITY, json_array_size(pairs)};
    add_pairs(&frame, pairs, 0);
    add_pairs(&frame, pairs, 1);
    if (!isfinite(2 * (frame.high - frame.low)))
        return;
    widen(&frame);
    api_markup_format(page,
                      "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" "
                      "aria-label=\"%s against %s\">\n",
                      WIDTH, HEIGHT, y, x);
    add_grid(page, &frame);
    add_scale(page, &frame, x, y);
    api_markup_format(page, "<path class=\"equal\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
                      right_of(&frame, frame.low), y_of(&frame, frame.low),
                      right_of(&frame, frame.high), y_of(&frame, frame.high));
    for (size_t i = 0; i < frame.n; i++) {
        const json_t *pair = json_array_get(pairs, i);
        const double f = json_number_value(json_array_get(pair, 0));
        const double q = json_number_value(json_array_get(pair, 1));
        api_markup_format(page,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>%.4g, "
                          "%.4g</title></circle>",
                          right_of(&frame, f), y_of(&frame, q), f, q);
    }
    api_markup_add(page, "</svg>\n");
}

void
html_range(struct api_markup *page, double min, double max, double low, double high)
{
    double unit = high > low ? 100 / (high - low) : 0;
    double width = fmax((max - min) * unit, 0.5);
    if (!isfinite(width) || !unit)
        return;
    api_markup_format(page,
                      "<svg class=\"range\" viewBox=\"0 0 100 8\" aria-hidden=\"true\">"
                      "<path d=\"M0 4H100\"/><rect x=\"%.2f\" y=\"1\" width=\"%.2f\" "
                      "height=\"6\"/><path d=\"M%.2f 0V8\"/></svg>",
                      (min - low) * unit, width, -low * unit);
}
