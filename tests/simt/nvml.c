// A library with NVML's names: one card, slowed down by what $OUTPACE_FAKE_NVML says (bits), which answers
// only between init and shutdown.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static int opened;
static int card;

static int is_card(const void *device) { return opened && device == &card; }

int nvmlInit_v2(void) {
    opened++;
    return OK;
}
int nvmlShutdown(void) { return opened-- > 0 ? OK : UNINITIALIZED; }

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    *device = &card;
    return opened && strcmp(uuid, "GPU-00000000-0000-0000-0000-000000000001") == 0 ? OK : NOT_FOUND;
}
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz) {
    if (!is_card(device) || (which != 1 && which != 2)) return INVALID;
    *mhz = which == 1 ? 1755 : 3201;
    return OK;
}
int nvmlDeviceGetMaxClockInfo(void *device, int which, unsigned *mhz) {
    *mhz = 1980;
    return is_card(device) && which == 1 ? OK : INVALID;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = 412500;
    return is_card(device) ? OK : INVALID;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    (void)device;
    *milliwatts = 1;
    return NOT_SUPPORTED;
}
int nvmlDeviceGetTemperature(void *device, int where, unsigned *celsius) {
    *celsius = 61;
    return is_card(device) && where == 0 ? OK : INVALID;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    const char *bits = getenv("OUTPACE_FAKE_NVML");
    *reasons = bits ? strtoull(bits, NULL, 0) : 0;
    return is_card(device) ? OK : INVALID;
}
int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    snprintf(text, size, "580.159.04");
    return opened ? OK : UNINITIALIZED;
}
