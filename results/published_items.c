#include "engine/base/shipped.h"
#include "results/published.h"

#include <string.h>

EMBED(published_lookahead_table_2, "results/published/lookahead-table-2.tsv")
EMBED(published_lookahead_table_3, "results/published/lookahead-table-3.tsv")
EMBED(published_lookahead_table_4, "results/published/lookahead-table-4.tsv")
EMBED(published_lookahead_figure_4a, "results/published/lookahead-figure-4a.tsv")
EMBED(published_lookahead_figure_4b, "results/published/lookahead-figure-4b.tsv")
EMBED(published_lookahead_figure_5, "results/published/lookahead-figure-5.tsv")
EMBED(published_lookahead_figure_6, "results/published/lookahead-figure-6.tsv")
EMBED(published_lookahead_figure_7, "results/published/lookahead-figure-7.tsv")
EMBED(published_lookahead_figure_8, "results/published/lookahead-figure-8.tsv")
EMBED(published_ngrammys_figure_1, "results/published/ngrammys-figure-1.tsv")
EMBED(published_ngrammys_figure_2, "results/published/ngrammys-figure-2.tsv")
EMBED(published_ngrammys_figure_3, "results/published/ngrammys-figure-3.tsv")
EMBED(published_ngrammys_figure_4, "results/published/ngrammys-figure-4.tsv")
EMBED(published_ngrammys_figure_5, "results/published/ngrammys-figure-5.tsv")
EMBED(published_ngrammys_figure_6, "results/published/ngrammys-figure-6.tsv")
EMBED(published_ngrammys_figure_7, "results/published/ngrammys-figure-7.tsv")
EMBED(published_ngrammys_figure_8, "results/published/ngrammys-figure-8.tsv")
EMBED(published_ngrammys_figure_9, "results/published/ngrammys-figure-9.tsv")
EMBED(published_ngrammys_table_1, "results/published/ngrammys-table-1.tsv")
EMBED(published_kangaroo_figure_1a, "results/published/kangaroo-figure-1a.tsv")
EMBED(published_kangaroo_figure_1b, "results/published/kangaroo-figure-1b.tsv")
EMBED(published_kangaroo_figure_3a, "results/published/kangaroo-figure-3a.tsv")
EMBED(published_kangaroo_figure_3b, "results/published/kangaroo-figure-3b.tsv")
EMBED(published_kangaroo_table_1, "results/published/kangaroo-table-1.tsv")
EMBED(published_kangaroo_table_2, "results/published/kangaroo-table-2.tsv")
EMBED(published_ouroboros_table_1, "results/published/ouroboros-table-1.tsv")
EMBED(published_ouroboros_table_2, "results/published/ouroboros-table-2.tsv")
EMBED(published_ouroboros_table_3, "results/published/ouroboros-table-3.tsv")
EMBED(published_ouroboros_table_4, "results/published/ouroboros-table-4.tsv")
EMBED(published_ouroboros_figure_3, "results/published/ouroboros-figure-3.tsv")
EMBED(published_ouroboros_figure_4, "results/published/ouroboros-figure-4.tsv")
EMBED(published_ouroboros_figure_5, "results/published/ouroboros-figure-5.tsv")
EMBED(published_mistral_cache, "results/published/mistral-cache.tsv")
EMBED(published_mistral_window, "results/published/mistral-window.tsv")
EMBED(published_spec_bench, "results/published/spec-bench.tsv")

const PublishedItem published_items[] = {
    {"lookahead-table-2", published_lookahead_table_2, published_lookahead_table_2_end},
    {"lookahead-table-3", published_lookahead_table_3, published_lookahead_table_3_end},
    {"lookahead-table-4", published_lookahead_table_4, published_lookahead_table_4_end},
    {"lookahead-figure-4a", published_lookahead_figure_4a, published_lookahead_figure_4a_end},
    {"lookahead-figure-4b", published_lookahead_figure_4b, published_lookahead_figure_4b_end},
    {"lookahead-figure-5", published_lookahead_figure_5, published_lookahead_figure_5_end},
    {"lookahead-figure-6", published_lookahead_figure_6, published_lookahead_figure_6_end},
    {"lookahead-figure-7", published_lookahead_figure_7, published_lookahead_figure_7_end},
    {"lookahead-figure-8", published_lookahead_figure_8, published_lookahead_figure_8_end},
    {"ngrammys-figure-1", published_ngrammys_figure_1, published_ngrammys_figure_1_end},
    {"ngrammys-figure-2", published_ngrammys_figure_2, published_ngrammys_figure_2_end},
    {"ngrammys-figure-3", published_ngrammys_figure_3, published_ngrammys_figure_3_end},
    {"ngrammys-figure-4", published_ngrammys_figure_4, published_ngrammys_figure_4_end},
    {"ngrammys-figure-5", published_ngrammys_figure_5, published_ngrammys_figure_5_end},
    {"ngrammys-figure-6", published_ngrammys_figure_6, published_ngrammys_figure_6_end},
    {"ngrammys-figure-7", published_ngrammys_figure_7, published_ngrammys_figure_7_end},
    {"ngrammys-figure-8", published_ngrammys_figure_8, published_ngrammys_figure_8_end},
    {"ngrammys-figure-9", published_ngrammys_figure_9, published_ngrammys_figure_9_end},
    {"ngrammys-table-1", published_ngrammys_table_1, published_ngrammys_table_1_end},
    {"kangaroo-figure-1a", published_kangaroo_figure_1a, published_kangaroo_figure_1a_end},
    {"kangaroo-figure-1b", published_kangaroo_figure_1b, published_kangaroo_figure_1b_end},
    {"kangaroo-figure-3a", published_kangaroo_figure_3a, published_kangaroo_figure_3a_end},
    {"kangaroo-figure-3b", published_kangaroo_figure_3b, published_kangaroo_figure_3b_end},
    {"kangaroo-table-1", published_kangaroo_table_1, published_kangaroo_table_1_end},
    {"kangaroo-table-2", published_kangaroo_table_2, published_kangaroo_table_2_end},
    {"ouroboros-table-1", published_ouroboros_table_1, published_ouroboros_table_1_end},
    {"ouroboros-table-2", published_ouroboros_table_2, published_ouroboros_table_2_end},
    {"ouroboros-table-3", published_ouroboros_table_3, published_ouroboros_table_3_end},
    {"ouroboros-table-4", published_ouroboros_table_4, published_ouroboros_table_4_end},
    {"ouroboros-figure-3", published_ouroboros_figure_3, published_ouroboros_figure_3_end},
    {"ouroboros-figure-4", published_ouroboros_figure_4, published_ouroboros_figure_4_end},
    {"ouroboros-figure-5", published_ouroboros_figure_5, published_ouroboros_figure_5_end},
    {"mistral-cache", published_mistral_cache, published_mistral_cache_end},
    {"mistral-window", published_mistral_window, published_mistral_window_end},
    {"spec-bench", published_spec_bench, published_spec_bench_end},
};
const int published_count = sizeof published_items / sizeof *published_items;

const PublishedItem *published_find(const char *name) {
    for (int i = 0; i < published_count; i++)
        if (strcmp(published_items[i].name, name) == 0) return &published_items[i];
    return NULL;
}
