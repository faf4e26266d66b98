# SPDX-License-Identifier: Apache-2.0
#
# make | make demo | make test | make check | make bench | make fuzz | make install
# Other flavours are other build folders: make SAN=address,undefined test, make CC=clang B=build/clang.
SAN       ?=
comma     := ,
B         ?= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
PREFIX    ?= /usr/local
DESTDIR   ?=
CFLAGS    ?= -O2 -g
FUZZ_SECONDS ?= 20
DEMO_TRACE ?= $(firstword $(wildcard traces/samples/mooncake*))

WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wconversion \
           -Wno-sign-conversion $(if $(WERROR),-Werror)
C_FLAGS := -std=c17 -D_POSIX_C_SOURCE=200809L -I. $(WARN) -ffp-contract=off \
           $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
           $(if $(findstring fuzzer,$(SAN)),-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
L_FLAGS := $(if $(SAN),-fsanitize=$(SAN))
LIBS    := -ljansson -lz -lm
LUA     := -lluajit-5.1
# Without OpenMP the search over mappings has one thread.
OPENMP  := $(shell echo 'int main(void) { return 0; }' | $(CC) -fopenmp -x c -o /dev/null - 2>/dev/null && \
             echo -fopenmp)
EVENT   := -levent_core -levent_pthreads -lpthread
SERVE   := -levent_extra -levent_core -lsqlite3

# A study's processes speak MPI where there is mpicc with its headers.
MPI      := $(shell echo '\#include <mpi.h>' | mpicc -E -x c - >/dev/null 2>&1 && echo mpi)
MPI_FLAGS = $(patsubst -I%,-isystem %,$(shell mpicc --showme:compile))
STUDY    := -Wl,--as-needed -lnlopt $(OPENMP) -lsqlite3 -lpthread $(if $(MPI),$(shell mpicc --showme:link))

obj      = $(patsubst %,$(B)/obj/%.o,$(1))
# What replay may stand on, then what only the simulator uses.
base    := $(filter-out sim/base/ranks_$(if $(MPI),alone,mpi).c,$(wildcard sim/base/*.c))
layout  := $(wildcard sim/layout/*.c sim/plan/*.c hw/*.c)
sim     := $(filter-out sim/cmd/main.c,$(wildcard sim/cost/*.c sim/policy/*.c sim/engine/*.c \
           sim/study/*.c sim/tune/*.c sim/pareto/*.c sim/reproduce/*.c sim/report/*.c sim/web/*.c \
           sim/serve/*.c sim/cmd/*.c traces/*.c workloads/*.c))
replay  := $(filter-out replay/main.c replay/no_cuda.c,$(wildcard replay/*.c))
common   := $(B)/lib/layout.a $(B)/lib/base.a
archives := $(B)/lib/replay.a $(B)/lib/sim.a $(common)
tests   := $(patsubst tests/%.c,$(B)/bin/%,$(wildcard tests/test_*.c))
fuzzers := $(patsubst tests/fuzz/%.c,$(B)/fuzz/bin/%,$(wildcard tests/fuzz/fuzz_*.c))

MAKEFLAGS += --no-print-directory

.PHONY: all deps deps-test demo test test-binaries charts browser-test serve-load check \
        bench fuzz golden fidelity study man install install-policy uninstall clean help
.SECONDARY:
all: $(B)/bin/wavetank $(B)/bin/wavetank-replay
$(B)/bin/wavetank: $(call obj,sim/cmd/main.c) $(B)/lib/sim.a $(common)
	$(link) $(SERVE) $(STUDY) $(LUA) $(LIBS)
$(B)/bin/wavetank-replay: $(call obj,replay/main.c replay/no_cuda.c) $(B)/lib/replay.a $(common)
	$(link) $(EVENT) $(LIBS)
$(B)/lib/base.a:   $(call obj,$(base))
$(B)/lib/layout.a: $(call obj,$(layout))
$(B)/lib/sim.a:    $(call obj,$(sim)) $(B)/obj/gen/assets.o
$(B)/lib/replay.a: $(call obj,$(replay) $(wildcard kernels/*.c))

# What the pages are made of, inside the program; the charts too where "make charts" has fetched them.
web := $(wildcard sim/web/*.html sim/web/*.css sim/web/*.js sim/web/*.svg) docs/openapi.json \
       $(wildcard $(B)/web/*.min.js $(B)/web/*.txt)
$(B)/gen/assets.c: sim/web/embed.sh $(web)
	@mkdir -p $(@D)
	sim/web/embed.sh $(web) >$@
$(B)/obj/gen/assets.o: $(B)/gen/assets.c
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -c -o $@ $<
charts:
	@tests/deps.sh charts
	@sim/web/fetch.sh $(B)/web
# With the charts inside; SHOTS=FOLDER keeps screenshots.
browser-test:
	@$(MAKE) -s charts
	@$(MAKE) -s $(B)/bin/wavetank
	@tests/browser/run.sh $(B) $(SHOTS)
serve-load: all $(B)/bin/serve_load
	@tests/serve_load.sh $(B)/bin/wavetank $(B)/bin/serve_load 1000 60
$(B)/bin/serve_load: $(B)/obj/tests/serve_load.c.o $(archives)
	$(link) $(SERVE) $(LIBS)

# The two commands of the README install what they need first.
deps:
	@tests/deps.sh run
deps-test:
	@tests/deps.sh run test
demo: deps
	@$(MAKE) -s all
	$(B)/bin/wavetank sim $(DEMO_TRACE) --model deepseek-v3.2 --cluster b200x8
test: deps-test
	@$(MAKE) -s all test-binaries
	@tests/run.sh $(B) $(tests)
test-binaries: $(tests)
$(B)/bin/test_%: $(B)/obj/tests/test_%.c.o $(archives)
	$(link) -lcriterion $(EVENT) $(SERVE) $(STUDY) $(LUA) $(LIBS)
$(B)/obj/tests/%: C_FLAGS += -Wno-conversion # Criterion's macros trip it
$(B)/obj/sim/pareto/%: C_FLAGS += $(or $(OPENMP),-Wno-unknown-pragmas)
$(B)/obj/sim/base/ranks_mpi.c.o: C_FLAGS += $(MPI_FLAGS)

check:
	@tests/deps.sh run test check
	@tests/check.sh
bench: all $(B)/bin/bench_load
	@tests/bench.sh $(B)/bin/wavetank $(B)/bin/bench_load
$(B)/bin/bench_load: $(B)/obj/tests/bench_load.c.o $(archives)
	$(link) $(LUA) $(LIBS)
# Another flavour: clang's coverage in every object, libFuzzer's main at the link.
fuzz:
	@tests/deps.sh run fuzz
	@$(MAKE) -s CC=clang SAN=fuzzer-no-link,address,undefined B=$(B)/fuzz $(fuzzers)
	@tests/fuzz.sh $(FUZZ_SECONDS) $(fuzzers)
$(B)/bin/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.c.o $(archives)
	$(link) -fsanitize=fuzzer $(EVENT) $(SERVE) $(LUA) $(LIBS)
golden: all
	@tests/golden.sh $(B)/bin/wavetank update
fidelity: all
	WAVETANK_DATA=. $(B)/bin/wavetank reproduce splash helix --markdown docs/fidelity.md >/dev/null
study: all
	docs/studies/margin.sh $(B)/bin/wavetank $(B)/study
	cp $(B)/study/margin.md docs/studies/margin.md

data := $(wildcard hw/*/*.json hw/*/*.csv hw/papers/*/* workloads/presets/*.json \
    traces/samples/*.* traces/samples/*/*)
docs := $(wildcard docs/*.md README.md CHANGES.md LICENSE)
# From the tables that parse the options.
man: all
	mkdir -p $(B)/man
	$(B)/bin/wavetank man --folder $(B)/man
	$(B)/bin/wavetank completion bash >$(B)/man/wavetank.bash
	$(B)/bin/wavetank completion zsh >$(B)/man/_wavetank
version = $(shell sed -n 's/^.define WAVETANK_VERSION "\(.*\)"/\1/p' sim/cmd/version.h)
share := $(DESTDIR)$(PREFIX)/share
install: all man install-policy
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(B)/bin/wavetank $(B)/bin/wavetank-replay $(DESTDIR)$(PREFIX)/bin
	for f in $(data); do install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/wavetank/$$f || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/share/doc/wavetank
	install -m 644 $(docs) $(DESTDIR)$(PREFIX)/share/doc/wavetank
	install -d $(share)/man/man1
	install -m 644 $(B)/man/*.1 $(share)/man/man1
	install -D -m 644 $(B)/man/wavetank.bash $(share)/bash-completion/completions/wavetank
	install -D -m 644 $(B)/man/_wavetank $(share)/zsh/site-functions/_wavetank
# What a policy of one's own is compiled with.
install-policy:
	install -D -m 644 sim/include/wavetank/policy.h $(DESTDIR)$(PREFIX)/include/wavetank/policy.h
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed -e 's#@PREFIX@#$(PREFIX)#' -e 's#@VERSION@#$(version)#' sim/include/wavetank.pc.in \
	    >$(DESTDIR)$(PREFIX)/lib/pkgconfig/wavetank.pc
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/wavetank $(DESTDIR)$(PREFIX)/bin/wavetank-replay
	rm -rf $(DESTDIR)$(PREFIX)/include/wavetank $(DESTDIR)$(PREFIX)/lib/pkgconfig/wavetank.pc
	rm -rf $(DESTDIR)$(PREFIX)/share/wavetank $(DESTDIR)$(PREFIX)/share/doc/wavetank
	rm -f $(share)/man/man1/wavetank.1 $(share)/man/man1/wavetank-*.1
	rm -f $(share)/bash-completion/completions/wavetank $(share)/zsh/site-functions/_wavetank
clean:
	rm -rf $(B)
help:
	@echo "make            build/bin/wavetank and wavetank-replay"
	@echo "make demo       install what is missing, build, replay a recorded hour of traffic"
	@echo "make test       all tests (SAN=address,undefined for the sanitizers)"
	@echo "make check      format, include directions, sizes, clang-tidy, cppcheck"
	@echo "make bench      speed on this machine, as text"
	@echo "make fuzz       every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make golden     write the expected outputs of tests/golden anew: say why in the commit"
	@echo "make fidelity   write docs/fidelity.md anew: the papers' numbers beside ours"
	@echo "make study      run the study of margins (5 minutes on two cores) and write its page anew"
	@echo "make man        man pages and the shells' completion, which make install installs"
	@echo "make install    to PREFIX=$(PREFIX), under DESTDIR (make uninstall takes it back)"
	@echo "make gputest    CUDA kernels against the CPU (make gpubench: their speed); needs nvcc"
	@echo "make charts     fetch the chart library of reports and serve (npm), for the next make"
	@echo "make browser-test  the pages in Chromium (make serve-load: 1,000 clients for a minute)"
	@echo "make clean      remove $(B)"

link = @mkdir -p $(@D); $(CC) $(L_FLAGS) $(LDFLAGS) -o $@ $^
$(B)/lib/%.a:
	@mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $^
$(B)/obj/%.c.o: %.c
	@mkdir -p $(@D)
	$(CC) -MMD -MP $(C_FLAGS) $(CFLAGS) -c -o $@ $<
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

# The CUDA half: `make replay` links wavetank-replay with the cuda backend, the rest is for a machine
# with GPUs.
CUDA_HOME ?= /usr/local/cuda
NVCC      ?= $(CUDA_HOME)/bin/nvcc
GPU_ARCH  ?= 90a
NVCC_ARCH := -gencode=arch=compute_$(GPU_ARCH),code=sm_$(GPU_ARCH)
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -L$(CUDA_HOME)/lib -lnccl -lcublasLt -lcudart_static \
             -ldl -lrt -lpthread -lstdc++
kernels   := $(call obj,$(wildcard kernels/*.cu))
cuda      := $(filter-out replay/cuda/backend.c,$(wildcard replay/cuda/*.c))
gpu_tests := $(patsubst tests/gpu/%,$(B)/gpu/%,$(basename $(filter-out %.cuh,$(wildcard tests/gpu/test_*))))
benches   := $(patsubst tests/gpu/%,$(B)/gpu/%,$(basename $(filter-out %.cuh,$(wildcard tests/gpu/bench_*))))
gpu_parts := $(call obj,$(filter-out tests/gpu/test_% tests/gpu/bench_%,$(wildcard tests/gpu/*.c)))

.PHONY: replay gputest gpubench gpu-programs nvcc-present
.SECONDEXPANSION:
gpu-programs: $(gpu_tests) $(benches)
gputest: $(gpu_tests) replay
	@tests/gpu/run.sh $(B) $(GPU_TESTS)
gpubench: $(benches)
	@for bench in $(benches); do $$bench "$$(date +%F)" && echo || exit 1; done
$(B)/gpu/%: $$(call obj,$$(wildcard tests/gpu/$$*.c tests/gpu/$$*.cu)) $(gpu_parts) $(B)/lib/cuda.a \
            $(B)/lib/kernels.a $(B)/lib/replay.a $(common)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(EVENT) $(LIBS) -Wl,--as-needed $(CUDA_LIBS)
$(B)/lib/kernels.a: $(kernels)
$(B)/lib/cuda.a: $(call obj,$(cuda))
replay: $(call obj,replay/main.c replay/cuda/backend.c) $(B)/lib/cuda.a $(B)/lib/kernels.a \
        $(B)/lib/replay.a $(common)
	@mkdir -p $(B)/bin
	$(CC) $(L_FLAGS) $(LDFLAGS) -o $(B)/bin/wavetank-replay.new $^ $(EVENT) $(LIBS) -Wl,--as-needed $(CUDA_LIBS)
	@mv $(B)/bin/wavetank-replay.new $(B)/bin/wavetank-replay
$(B)/obj/replay/cuda/%.c.o $(B)/obj/tests/gpu/%.c.o: C_FLAGS += -isystem $(CUDA_HOME)/include
$(B)/obj/%.cu.o: %.cu | nvcc-present
	@mkdir -p $(@D)
	$(NVCC) -MMD -MP -std=c++17 -O3 $(NVCC_ARCH) -I. -Xcompiler -Wall,-Wextra -c -o $@ $<
nvcc-present:
	@command -v $(NVCC) >/dev/null || { echo "the kernels need nvcc of CUDA 12 or later:" \
	    "install the CUDA toolkit, or set CUDA_HOME or NVCC" >&2; exit 2; }
