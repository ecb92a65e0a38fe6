# Unit programs of the engine (without engine/files/data).
EXTRA_DIST += tests/unit/builder.h tests/unit/cases.h tests/unit/deploy/fake_job.h tests/unit/targets/chip_runtime.h tests/unit/equalize_nets.h tests/unit/failing.h tests/unit/quantized.h
check_PROGRAMS += \
	tests/unit/engine/test_blocked \
	tests/unit/engine/test_cases \
	tests/unit/engine/test_catalog \
	tests/unit/engine/test_constant \
	tests/unit/engine/test_data_checks \
	tests/unit/engine/test_sample_choice \
	tests/unit/engine/test_sequential \
	tests/unit/engine/test_equalize \
	tests/unit/engine/test_equalize_refusals \
	tests/unit/engine/test_external \
	tests/unit/engine/test_fake \
	tests/unit/engine/test_crashes \
	tests/unit/engine/test_fixed \
	tests/unit/engine/test_float_outputs \
	tests/unit/engine/test_fused_pairs \
	tests/unit/engine/test_gates \
	tests/unit/engine/test_gptq \
	tests/unit/engine/test_trace \
	tests/unit/numbers/test_half \
	tests/unit/engine/test_greedy \
	tests/unit/engine/test_groups \
	tests/unit/engine/test_least_error \
	tests/unit/engine/test_output_classes \
	tests/unit/engine/test_output_slices \
	tests/unit/engine/test_float16 \
	tests/unit/engine/test_model \
	tests/unit/engine/test_multiply \
	tests/unit/numbers/test_number \
	tests/unit/numbers/test_observations \
	tests/unit/engine/test_pairs \
	tests/unit/engine/test_parts \
	tests/unit/engine/test_journal \
	tests/unit/engine/test_pattern_search \
	tests/unit/engine/test_patterns \
	tests/unit/engine/test_placement \
	tests/unit/engine/test_plan \
	tests/unit/numbers/test_range \
	tests/unit/engine/test_rewrite \
	tests/unit/engine/test_roundings \
	tests/unit/engine/test_row_pairs \
	tests/unit/engine/test_rules \
	tests/unit/engine/test_sandbox \
	tests/unit/engine/test_scopes \
	tests/unit/engine/test_select \
	tests/unit/numbers/test_simd \
	tests/unit/engine/test_skeleton \
	tests/unit/engine/test_stage_warnings \
	tests/unit/engine/test_tasks \
	tests/unit/engine/test_twin \
	tests/unit/engine/test_weights

# The judging process and its messages, with a library in OpenVINO's place.
check_PROGRAMS += tests/unit/deploy/test_lost_judge tests/unit/deploy/test_own_precision \
	tests/unit/deploy/test_trials tests/unit/deploy/test_wire
tests_unit_deploy_test_trials_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=qdqi_choose_scales
check_LTLIBRARIES += tests/unit/deploy/libfake_openvino.la
tests_unit_deploy_libfake_openvino_la_SOURCES = tests/unit/deploy/fake_openvino.c
tests_unit_deploy_libfake_openvino_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath $(abs_builddir)
EXTRA_tests_unit_deploy_test_lost_judge_DEPENDENCIES = tests/unit/deploy/libfake_openvino.la
EXTRA_tests_unit_deploy_test_own_precision_DEPENDENCIES = tests/unit/deploy/libfake_openvino.la
EXTRA_tests_unit_deploy_test_trials_DEPENDENCIES = tests/unit/deploy/libfake_openvino.la
EXTRA_tests_unit_deploy_test_wire_DEPENDENCIES = tests/unit/deploy/libfake_openvino.la

# This program has two targets more than the library: it is built with its own list of targets.
check_PROGRAMS += tests/unit/engine/test_targets
tests_unit_engine_test_targets_CPPFLAGS = -I$(top_builddir)/tests/unit/targets $(AM_CPPFLAGS)
tests_unit_engine_test_targets_SOURCES = tests/unit/engine/test_targets.c \
	tests/unit/targets/toy.c tests/unit/targets/crowd.c engine/plan/targets/targets.c
BUILT_SOURCES += tests/unit/targets/targets.inc
CLEANFILES += tests/unit/targets/targets.inc
tests/unit/targets/targets.inc: engine/targets.inc $(top_srcdir)/tests/unit/engine.mk
	$(AM_V_GEN)$(MKDIR_P) tests/unit/targets && \
	{ cat engine/targets.inc && echo 'TARGET(toy)' && echo 'TARGET(crowd)'; } >$@.tmp && mv $@.tmp $@

# This program has the target chip and the runtime chip more than the library: they consist of two
# files and of their names in the two lists.
check_PROGRAMS += tests/unit/deploy/test_provider
tests_unit_deploy_test_provider_CPPFLAGS = -I$(top_builddir)/tests/unit/deploy $(AM_CPPFLAGS)
tests_unit_deploy_test_provider_SOURCES = tests/unit/deploy/test_provider.c \
	tests/unit/targets/chip.c tests/unit/targets/chip_runtime.c \
	engine/plan/targets/targets.c engine/runtimes/rows.c
BUILT_SOURCES += tests/unit/deploy/targets.inc tests/unit/deploy/runtimes.inc
CLEANFILES += tests/unit/deploy/targets.inc tests/unit/deploy/runtimes.inc
tests/unit/deploy/targets.inc: engine/targets.inc
	$(AM_V_GEN)$(MKDIR_P) tests/unit/deploy && \
	{ cat engine/targets.inc && echo 'TARGET(chip)'; } >$@.tmp && mv $@.tmp $@
tests/unit/deploy/runtimes.inc: engine/runtimes.inc
	$(AM_V_GEN)$(MKDIR_P) tests/unit/deploy && \
	{ cat engine/runtimes.inc && echo 'RUNTIME(chip)'; } >$@.tmp && mv $@.tmp $@

# In these programs the Nth allocation fails (failing.h). The arena makes one malloc for many
# allocations; see --enable-arena-emulator.
FAILING = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
check_PROGRAMS += tests/fault/test_engine_memory tests/fault/test_whatif_memory
tests_fault_test_engine_memory_LDFLAGS = $(FAILING)
tests_fault_test_whatif_memory_LDFLAGS = $(FAILING)
tests_unit_engine_test_catalog_LDFLAGS = $(FAILING)
tests_unit_engine_test_equalize_LDFLAGS = $(FAILING)
tests_unit_engine_test_external_LDFLAGS = $(FAILING)
tests_unit_numbers_test_observations_LDFLAGS = $(FAILING)
tests_unit_engine_test_multiply_LDFLAGS = $(FAILING)
tests_unit_engine_test_roundings_LDFLAGS = $(FAILING)
tests_unit_engine_test_sandbox_LDFLAGS = $(FAILING)
tests_unit_engine_test_twin_LDFLAGS = $(FAILING)

# The fuzz targets of models, insertion cases and observations. Built without libFuzzer,
# they replay their corpora.
check_PROGRAMS += tests/fuzz/fuzz_model tests/fuzz/fuzz_case tests/fuzz/fuzz_observations
