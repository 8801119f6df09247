// SPDX-License-Identifier: GPL-2.0-or-later
/* The table, the JSON document, and the figures of an earlier one. */
#include "cli/measure-output.h"

#include <stdio.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"

#define MIB (1024.0 * 1024)
#define BEFORE_BYTES_MAX (64 * 1024 * 1024)

static const struct {
        const char *key;
        gsize offset;
        gboolean is_double;
} figure_keys[] = {
#define COUNT(field)                                                                               \
        {                                                                                          \
#field, G_STRUCT_OFFSET(MeasureFigures, field), FALSE                              \
        }
#define MS(field)                                                                                  \
        {                                                                                          \
#field, G_STRUCT_OFFSET(MeasureFigures, field), TRUE                               \
        }
        COUNT(files),    COUNT(bytes), COUNT(extents),    COUNT(runs),
        COUNT(requests), COUNT(seeks), MS(seek_ms),       MS(rotation_ms),
        MS(transfer_ms), MS(total_ms), MS(sequential_ms),
#undef COUNT
#undef MS
};

void
measure_figures(MeasureOutput *output)
{
        const LoadEstimate *load = output->load;
        const RequestCost *cost = &load->result.cost;

        output->figures = (MeasureFigures){
                .model = output->disk != NULL ? output->disk->model->name : NULL,
                .files = output->layout->measured,
                .bytes = load->bytes,
                .extents = load->extents,
                .runs = load->runs,
                .requests = cost->requests,
                .seeks = cost->seeks,
                .seek_ms = cost->seek_ms,
                .rotation_ms = cost->rotation_ms,
                .transfer_ms = cost->transfer_ms,
                .total_ms = load->result.total_ms,
                .sequential_ms = load->sequential_ms,
        };
}

/* --- JSON --- */

static void
add_figures(JsonBuilder *builder, const MeasureFigures *figures)
{
        json_add_string(builder, "model", figures->model != NULL ? figures->model : "");
        for (gsize i = 0; i < G_N_ELEMENTS(figure_keys); i++) {
                gconstpointer field = (const char *)figures + figure_keys[i].offset;

                if (figure_keys[i].is_double)
                        json_add_double(builder, figure_keys[i].key, *(const double *)field);
                else
                        json_add_int(builder, figure_keys[i].key,
                                     (gint64) * (const guint64 *)field);
        }
}

static void
add_situations(JsonBuilder *builder, const GArray *situations)
{
        json_builder_set_member_name(builder, "situations");
        json_builder_begin_array(builder);
        for (guint i = 0; i < situations->len; i++) {
                const Estimate *estimate = &g_array_index(situations, Estimate, i);

                json_builder_begin_object(builder);
                json_add_string(builder, "name", estimate->name);
                json_add_double(builder, "total_ms", estimate->total_ms);
                json_add_double(builder, "low_ms", estimate->low_ms);
                json_add_double(builder, "high_ms", estimate->high_ms);
                json_add_double(builder, "seek_ms", estimate->cost.seek_ms);
                json_add_double(builder, "rotation_ms", estimate->cost.rotation_ms);
                json_add_double(builder, "transfer_ms", estimate->cost.transfer_ms);
                json_add_int(builder, "requests", (gint64)estimate->cost.requests);
                json_add_int(builder, "bytes", (gint64)estimate->cost.bytes);
                json_builder_end_object(builder);
        }
        json_builder_end_array(builder);
}

static const char *
file_path(const MeasureOutput *output, guint number)
{
        return output->outside != NULL
                       ? output->outside[number]
                       : g_array_index(output->profile->files, ProfileFile, number).path;
}

static gboolean
is_measured(const MeasureOutput *output, guint number)
{
        return g_array_index(output->layout->files, LayoutFile, number).map != NULL;
}

static double
file_ms(const LaunchFileCost *cost)
{
        return cost->seek_ms + cost->rotation_ms + cost->transfer_ms + cost->overhead_ms;
}

static void
add_files(JsonBuilder *builder, const MeasureOutput *output)
{
        json_builder_set_member_name(builder, "per_file");
        json_builder_begin_array(builder);
        for (guint i = 0; i + 1 < output->files->len; i++) {
                const LaunchFileCost *cost = &g_array_index(output->files, LaunchFileCost, i);

                if (!is_measured(output, i))
                        continue;
                json_builder_begin_object(builder);
                json_add_path(builder, "path", file_path(output, i));
                json_add_int(builder, "bytes", (gint64)cost->bytes);
                json_add_int(builder, "extents", (gint64)cost->extents);
                json_add_int(builder, "runs", (gint64)cost->runs);
                json_add_int(builder, "requests", (gint64)cost->requests);
                json_add_double(builder, "seek_ms", cost->seek_ms);
                json_add_double(builder, "rotation_ms", cost->rotation_ms);
                json_add_double(builder, "transfer_ms", cost->transfer_ms);
                json_add_double(builder, "total_ms", file_ms(cost));
                json_builder_end_object(builder);
        }
        json_builder_end_array(builder);
}

gboolean
measure_print_json(const MeasureOutput *output, GError **error)
{
        g_autoptr(JsonBuilder) builder = json_builder_new();

        json_builder_begin_object(builder);
        if (output->name != NULL)
                json_add_string(builder, "name", output->name);
        add_figures(builder, &output->figures);
        json_add_bool(builder, "model_assumed", output->disk != NULL && output->disk->assumed);
        json_add_double(builder, "overhead_ms", output->load->result.cost.overhead_ms);
        json_add_int(builder, "metadata_blocks", (gint64)output->load->result.metadata_blocks);
        json_add_double(builder, "metadata_ms", output->load->result.metadata_ms);
        json_add_bool(builder, "metadata_known", output->layout->meta_known);
        json_add_string(builder, "confidence",
                        output->layout->logical_addresses || !output->layout->meta_known
                                ? "low"
                                : "normal");
        json_add_skipped(builder, "skipped", output->skipped);
        if (output->situations->len > 0)
                add_situations(builder, output->situations);
        if (output->files != NULL)
                add_files(builder, output);
        if (output->before != NULL) {
                json_builder_set_member_name(builder, "before");
                json_builder_begin_object(builder);
                add_figures(builder, output->before);
                json_builder_end_object(builder);
        }
        json_builder_end_object(builder);
        return json_print(builder, error);
}

/* --- text --- */

static void
print_figures(const char *label, const MeasureFigures *figures)
{
        printf("%-10s%8" G_GUINT64_FORMAT "%8" G_GUINT64_FORMAT "%10" G_GUINT64_FORMAT
               "%7" G_GUINT64_FORMAT "%9.0f%10.0f%10.0f%9.0f%12.0f\n",
               label, figures->extents, figures->runs, figures->requests, figures->seeks,
               figures->seek_ms, figures->rotation_ms, figures->transfer_ms, figures->total_ms,
               figures->sequential_ms);
}

static void
print_change(const MeasureFigures *before, const MeasureFigures *now)
{
        printf("%-10s%+8lld%+8lld%+10lld%+7lld%+9.0f%+10.0f%+10.0f%+9.0f%+12.0f", "change",
               (long long)(now->extents - before->extents), (long long)(now->runs - before->runs),
               (long long)(now->requests - before->requests),
               (long long)(now->seeks - before->seeks), now->seek_ms - before->seek_ms,
               now->rotation_ms - before->rotation_ms, now->transfer_ms - before->transfer_ms,
               now->total_ms - before->total_ms, now->sequential_ms - before->sequential_ms);
        if (before->total_ms > 0)
                printf("   (%.2f of before)", now->total_ms / before->total_ms);
        printf("\n");
        if (before->bytes != now->bytes)
                printf("the sets differ: %.1f MiB before, %.1f MiB now\n",
                       (double)before->bytes / MIB, (double)now->bytes / MIB);
}

static void
print_files(const MeasureOutput *output)
{
        printf("\n%8s%8s%8s%10s%9s  %s\n", "KiB", "extents", "runs", "requests", "ms", "file");
        for (guint i = 0; i + 1 < output->files->len; i++) {
                const LaunchFileCost *cost = &g_array_index(output->files, LaunchFileCost, i);
                g_autofree gchar *quoted = path_quote(file_path(output, i));

                if (is_measured(output, i))
                        printf("%8" G_GUINT64_FORMAT "%8" G_GUINT64_FORMAT "%8" G_GUINT64_FORMAT
                               "%10" G_GUINT64_FORMAT "%9.1f  %s\n",
                               cost->bytes / 1024, cost->extents, cost->runs, cost->requests,
                               file_ms(cost), quoted);
        }
}

static void
print_situations(const GArray *situations)
{
        printf("\n%-20s%9s%18s%9s%10s%10s%10s%8s\n", "start", "total ms", "low - high", "seek",
               "rotation", "transfer", "requests", "MiB");
        for (guint i = 0; i < situations->len; i++) {
                const Estimate *estimate = &g_array_index(situations, Estimate, i);
                g_autofree gchar *ends =
                        g_strdup_printf("%.0f - %.0f", estimate->low_ms, estimate->high_ms);

                printf("%-20s%9.0f%18s%9.0f%10.0f%10.0f%10" G_GUINT64_FORMAT "%8.1f\n",
                       estimate->name, estimate->total_ms, ends, estimate->cost.seek_ms,
                       estimate->cost.rotation_ms, estimate->cost.transfer_ms,
                       estimate->cost.requests, (double)estimate->cost.bytes / MIB);
        }
}

void
measure_print(const MeasureOutput *output)
{
        const MeasureFigures *now = &output->figures;

        printf("%s%s%" G_GUINT64_FORMAT " file%s, %.1f MiB, %" G_GUINT64_FORMAT
               " metadata blocks%s; drive model %s%s\n",
               output->name != NULL ? output->name : "", output->name != NULL ? ": " : "",
               now->files, now->files == 1 ? "" : "s", (double)now->bytes / MIB,
               output->load->result.metadata_blocks,
               output->layout->meta_known ? "" : " (not all known)",
               now->model != NULL ? now->model : "none",
               output->disk != NULL && output->disk->assumed ? " (assumed)" : "");
        printf("%-10s%8s%8s%10s%7s%9s%10s%10s%9s%12s\n", "", "extents", "runs", "requests", "seeks",
               "seek ms", "rotation", "transfer", "total", "sequential");
        if (output->before != NULL)
                print_figures("before", output->before);
        print_figures("now", now);
        if (output->before != NULL)
                print_change(output->before, now);
        if (output->situations->len > 0)
                print_situations(output->situations);
        if (output->files != NULL)
                print_files(output);
}

/* --- an earlier measurement --- */

gboolean
measure_figures_load(const char *path, MeasureFigures *ret, GError **error)
{
        g_autoptr(GBytes) bytes = file_read(path, BEFORE_BYTES_MAX, error);
        g_autoptr(JsonParser) parser = json_parser_new();
        g_autofree gchar *quoted = path_quote(path);
        MeasureFigures figures = {0};
        JsonObject *object;
        JsonNode *root, *node;
        const char *text;
        gsize length;

        if (bytes == NULL)
                return FALSE;
        text = g_bytes_get_data(bytes, &length);
        if (length == 0 || !json_parser_load_from_data(parser, text, (gssize)length, NULL) ||
            (root = json_parser_get_root(parser)) == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "%s is no JSON document of headstart measure --json", quoted);
                return FALSE;
        }
        object = json_node_get_object(root);
        for (gsize i = 0; i < G_N_ELEMENTS(figure_keys); i++) {
                gpointer field = (char *)&figures + figure_keys[i].offset;

                node = json_object_get_member(object, figure_keys[i].key);
                if (node == NULL || !JSON_NODE_HOLDS_VALUE(node) ||
                    json_node_get_value_type(node) == G_TYPE_STRING) {
                        g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                                    "%s lacks \"%s\"; make it with headstart measure --json",
                                    quoted, figure_keys[i].key);
                        return FALSE;
                }
                if (figure_keys[i].is_double)
                        *(double *)field = json_node_get_double(node);
                else
                        *(guint64 *)field = (guint64)MAX(json_node_get_int(node), 0);
        }
        node = json_object_get_member(object, "model");
        if (node != NULL && JSON_NODE_HOLDS_VALUE(node) &&
            json_node_get_value_type(node) == G_TYPE_STRING)
                figures.model = g_strdup(json_node_get_string(node));
        *ret = figures;
        return TRUE;
}

void
measure_figures_clear(MeasureFigures *figures)
{
        g_clear_pointer(&figures->model, g_free);
}
