// What this build is.
#pragma once

// "0.1.0 (3f2a91c)"; the commit and a mark for uncommitted changes come from the build.
const char *version_text(void);
const char *version_compiler(void); // compiler and its version
