// Names are written from values, not copied from the config: a point's decoder is read back into its method's
// parameters, and every value printed in the one form that hashes have, too.
#include "harness/config/sweep.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

enum { MOST_PARAMS = 2 * ARGS_MAX };

// --- parameters one by one -------------------------------------------------------------------------------

static void add_params(PointName *n, const char *section, const Arg *params, size_t count, const void *values,
                       Text *texts) {
    assert((size_t)n->param_count + count <= MOST_PARAMS);
    for (size_t i = 0; i < count; i++) {
        n->params[n->param_count++] = (StoreParam){.section = section, .name = params[i].name};
        arg_write(&params[i], values, texts);
        text_add(texts, "", 1); // each its own C string
    }
}

static void list_params(PointName *n, const MethodInfo *info, const Point *p, const void *values) {
    Text texts = {0};
    n->params = mem_new(MOST_PARAMS + 1, sizeof *n->params);
    add_params(n, "method", info->params, info->param_count, values, &texts);
    for (int i = 0; i < SETTINGS_SECTIONS; i++)
        add_params(n, settings_sections[i].name, settings_sections[i].params, settings_sections[i].count,
                   &p->settings, &texts);
    n->texts = mem_text(texts.data, texts.length);
    text_release(&texts);
    const char *at = n->texts;
    for (int i = 0; i < n->param_count; i++, at += strlen(at) + 1) n->params[i].value = at;
}

// --- the label -------------------------------------------------------------------------------------------

static void name_axis(const MethodInfo *info, const Point *p, const void *values, const YamlNode *axis,
                      bool all, Text *out) {
    const Arg *own = arg_find(info->params, info->param_count, axis->key);
    const Arg *setting = settings_find(axis->key);
    if (axis->count < 2 && !all) return;
    text_printf(out, " %s=", axis->key);
    if (own) arg_write(own, values, out);
    else if (setting) arg_write(setting, &p->settings, out);
}

static void name_axes(const MethodInfo *info, const Point *p, const void *values, const YamlNode *maps,
                      bool all, Text *out) {
    for (const YamlNode *n = maps ? maps->first : NULL; n; n = n->next) {
        if (maps->kind == NODE_LIST) name_axes(info, p, values, n, all, out);
        else name_axis(info, p, values, n, all, out);
    }
}

// A method's parameters are in its decoder after the colon, "key=value,..."; a baseline has none. A label
// replaces the parameters that don't vary. The experiment's own axes are named where they vary.
void point_name(const Experiment *x, const Point *p, PointName *out) {
    const MethodSpec *m = p->method >= 0 ? &x->methods[p->method] : NULL;
    const MethodInfo *info = m ? m->info : method_find("autoregressive", NULL);
    *out = (PointName){.method = info->name};
    const char *colon = strchr(p->decoder, ':');
    void *values = mem_new(1, info->param_size ? info->param_size : 1);
    args_defaults(info->params, info->param_count, values);
    bool ok = !colon || args_parse(info->params, info->param_count, values, colon + 1, NULL);
    assert(ok); // the sweep has written it
    (void)ok;
    list_params(out, info, p, values);
    text_puts(&out->label, m && m->label ? m->label : info->name);
    if (m) name_axes(info, p, values, m->matrix, !m->label, &out->label);
    if (m) name_axes(info, p, values, m->zip, !m->label, &out->label);
    for (int i = 0; i < SETTINGS_SECTIONS; i++)
        name_axes(info, p, values, x->settings[i], false, &out->label);
    mem_free(values);
}

void point_name_release(PointName *n) {
    text_release(&n->label);
    mem_free(n->params);
    mem_free(n->texts);
    *n = (PointName){0};
}
