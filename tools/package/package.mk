# The program for other machines: portable binaries, packages, and what `make install` copies. Part of the Makefile.

# The same objects, for machines that have only a C library, of GLIBC or newer: everything else is linked in, and the
# C library's symbols are bound to the versions of that time (tools/package/stubs). The symbols of a debugger are apart.
# The same sources give the same bytes in every folder: no build-id, which would hash the debugger's paths.
GLIBC = 2.28
STUBS = $(BUILD)/package/glibc-$(GLIBC)
PORTABLE_LIBS = -L$(STUBS) -Wl,--wrap=__libc_start_main -Wl,--build-id=none -Wl,-Bstatic \
    $(filter-out -lm -ldl -lpthread -pthread,$(shell $(PKG_CONFIG) --static --libs $(PACKAGES))) \
    $(filter-out -ldl -lrt,$(CUDA_LIBS)) -Wl,-Bdynamic -Wl,--no-as-needed -lm -lpthread -ldl -lrt
$(STUBS)/libc.so: tools/package/stubs | $(ROOT:=/list)
	$(call say,STUBS,$(@D))$< $(@D) $(GLIBC) $(CC)
PORTABLE = outpace-portable$(ROOT:%/root=-$(MACHINE))
$(PORTABLE): $(OBJECTS) $(BUILD)/tools/package/compat.o $(BUILD)/parts $(STUBS)/libc.so
	$(call say,LINK,$@)$(CC) $(LDFLAGS) $(sort $(filter %.o,$^)) -o $@ $(PORTABLE_LIBS)
	@$(call tool,objcopy) --only-keep-debug $@ $@.debug && $(call tool,strip) --strip-all $@
portable: $(PORTABLE)
	@tools/package/check $< $(GLIBC)
	@tools/package/licences $<-licences '$(ROOT)'

# Another machine's libraries come before everything that is compiled for it.
$(BUILD)/settings: | $(ROOT:=/list)
build/aarch64/root/list: tools/package/root
	$(call say,ROOT,$(@D))$< $(@D) arm64

# For pip and uv, into build/.
wheel: portable
	@./setup wheel && tools/package/wheel ./$(PORTABLE) $(GLIBC) $(MACHINE) '$(ROOT)' $(EMULATOR)

install: outpace
	@tools/package/install $(DESTDIR)$(PREFIX) ./outpace
uninstall:
	@tools/package/install --remove $(DESTDIR)$(PREFIX)

man: outpace
	@./outpace completions man >$(BUILD)/outpace.1 && echo "wrote $(BUILD)/outpace.1: man -l shows it"

.PHONY: portable wheel install uninstall man
