#include "engine/text/ids.h"

#include "engine/base/memory.h"

bool ids_add(IdList *list, int id) {
    void *ids = list->ids;
    if (list->count == list->capacity && !mem_grow(&ids, &list->capacity, list->count + 1, sizeof *list->ids))
        return false;
    list->ids = ids;
    list->ids[list->count++] = id;
    return true;
}

void ids_release(IdList *list) {
    mem_free(list->ids);
    *list = (IdList){0};
}
