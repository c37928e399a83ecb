// Written files are safetensors with the given tensors, on cache lines.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/model/safetensors.h"
#include "engine/train/tensors.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>

static void reads_back(void **state) {
    (void)state;
    char dir[FOLDER_PATH_SIZE];
    folder_make(dir);
    static const float weights[6] = {1, 2, 3, 4, 5, 6}, bias[3] = {7, 8, 9};
    for (int longer = 0; longer < 70; longer++) { // headers of all lengths
        char name[100], path[FOLDER_PATH_SIZE + 16];
        snprintf(name, sizeof name, "w%0*d", longer + 1, 0);
        snprintf(path, sizeof path, "%s/t", dir);
        const TensorOut tensors[] = {{name, "F32", 2, 3, weights, sizeof weights},
                                     {"b", "F32", 0, 3, bias, sizeof bias}};
        Error e = {0};
        Safetensors s;
        size_t size;
        if (!tensors_write(path, tensors, 2, &e)) fail_msg("%s", e.text);
        char *bytes = scratch_read(dir, "t", &size);
        if (!safetensors_parse((unsigned char *)bytes, size, path, &s, &e)) fail_msg("%s", e.text);
        const StoredTensor *w = safetensors_find(&s, name), *b = safetensors_find(&s, "b");
        assert_true(w && b && w->rank == 2 && w->dims[0] == 2 && w->dims[1] == 3 && b->rank == 1);
        assert_memory_equal(bytes + w->begin, weights, sizeof weights);
        assert_memory_equal(bytes + b->begin, bias, sizeof bias);
        if (w->begin % 64) fail_msg("name of %d characters: data begin at byte %zu", longer + 2, w->begin);
        safetensors_release(&s);
        mem_free(bytes);
    }
    folder_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
