#include "engine/base/sha256.h"

#include "engine/base/file.h"

#include <openssl/evp.h>
#include <stdio.h>

bool sha256_bytes(const void *data, size_t n, char out[SHA256_TEXT], Error *e) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (!EVP_Digest(data, n, digest, &length, EVP_sha256(), NULL) || length != 32)
        return error_system(e, "cannot compute SHA-256 of %zu bytes", n);
    for (unsigned i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return true;
}

bool sha256_file(const char *path, char out[SHA256_TEXT], Error *e) {
    FileView view;
    if (!file_map(path, &view, e)) return false;
    bool ok = sha256_bytes(view.data ? view.data : (const void *)"", view.size, out, e);
    file_unmap(&view);
    return ok;
}
