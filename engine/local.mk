# libqdq: sees itself, and of third parties what each file names.
lib_LTLIBRARIES += engine/libqdq.la
noinst_LTLIBRARIES += engine/libqdqi.la

include_HEADERS += engine/include/qdq.h
qdqinclude_HEADERS = \
	engine/include/qdq/catalog.h \
	engine/include/qdq/codes.h \
	engine/include/qdq/dataset.h \
	engine/include/qdq/error.h \
	engine/include/qdq/executor.h \
	engine/include/qdq/formats.h \
	engine/include/qdq/hosts.h \
	engine/include/qdq/judge.h \
	engine/include/qdq/limits.h \
	engine/include/qdq/model.h \
	engine/include/qdq/plan.h \
	engine/include/qdq/prepare.h \
	engine/include/qdq/quantize.h \
	engine/include/qdq/report.h \
	engine/include/qdq/rules.h \
	engine/include/qdq/spec.h \
	engine/include/qdq/stages.h \
	engine/include/qdq/targets.h \
	engine/include/qdq/words.h

ENGINE_CPPFLAGS = $(QDQ_INCLUDE) -I$(top_srcdir)/engine

# All of the engine, with its internals reachable for the unit tests.
engine_libqdqi_la_CPPFLAGS = $(ENGINE_CPPFLAGS) -I$(top_builddir)/engine/model \
	-I$(top_builddir)/engine \
	$(PROTOBUF_C_CFLAGS) $(LIBZIP_CFLAGS) $(LIBARCHIVE_CFLAGS) $(ZLIB_CFLAGS) \
	$(LUA_CFLAGS) $(ORT_CFLAGS)
# Loops over floats are written to vectorize; -O2 alone does not try hard, and it minds
# the flags that a comparison may raise, which nobody looks at. Products and sums are not
# fused, so that all processors compute the same bits.
engine_libqdqi_la_CFLAGS = $(AM_CFLAGS) -ftree-vectorize $(VECTORIZE_CFLAGS) \
	-fno-trapping-math -ffp-contract=off
# libzip and libarchive come from those who link this: libqdq loads them late.
engine_libqdqi_la_LIBADD = $(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(LUA_LIBS) -lm -ldl
engine_libqdqi_la_SOURCES = \
	engine/accept/gates.c engine/accept/gates.h \
	engine/accept/verdict.c engine/accept/verdict.h \
	engine/base/arena.c engine/base/arena.h \
	engine/base/dtype.c engine/base/dtype.h \
	engine/base/error.c \
	engine/base/glob.c engine/base/glob.h \
	engine/base/host.c engine/base/host.h \
	engine/base/map.c engine/base/map.h \
	engine/base/seconds.c engine/base/seconds.h \
	engine/base/tasks.c engine/base/tasks.h \
	engine/base/unused.c engine/base/unused.h \
	engine/base/version.c \
	engine/base/warnings.c engine/base/warnings.h \
	engine/base/words.c \
	engine/base/zeros.c engine/base/zeros.h \
	engine/calibrate/calibrate.c engine/calibrate/calibrate.h \
	engine/calibrate/nonfinite.c engine/calibrate/nonfinite.h \
	engine/calibrate/moments.c engine/calibrate/moments.h \
	engine/calibrate/parallel.c engine/calibrate/parallel.h \
	engine/cases/bind.c engine/cases/bind.h \
	engine/cases/case.c engine/cases/case.h engine/cases/host.h \
	engine/cases/catalog.c engine/cases/catalog.h \
	engine/cases/entries.c engine/cases/entries.h \
	engine/cases/lib_base.c engine/cases/lib_string.c engine/cases/lib_table.c \
	engine/cases/libs.h \
	engine/cases/sandbox.c engine/cases/sandbox.h \
	engine/cases/script.c engine/cases/script.h \
	engine/cuda/api.h \
	engine/cuda/device.c engine/cuda/device.h \
	engine/cuda/element.h \
	engine/cuda/kernels.h \
	engine/deploy/deploy.c engine/deploy/deploy.h \
	engine/deploy/kernel_names.h \
	engine/deploy/onnxruntime.c engine/deploy/onnxruntime_kernels.c \
	engine/deploy/openvino.c engine/deploy/openvino.h engine/deploy/openvino_api.h \
	engine/deploy/openvino_inputs.c engine/deploy/openvino_library.h \
	engine/deploy/openvino_kernels.c \
	engine/deploy/remote.c engine/deploy/remote.h \
	engine/deploy/serve.c \
	engine/deploy/whole.c engine/deploy/whole.h \
	engine/deploy/wire.c engine/deploy/wire.h \
	engine/edit/edit.c engine/edit/edit.h \
	engine/edit/merge.c \
	engine/edit/state.h \
	engine/edit/tensors.c \
	engine/edit/unused.c \
	engine/equalize/axis.c engine/equalize/axis.h \
	engine/equalize/labels.c engine/equalize/labels.h \
	engine/equalize/values.c engine/equalize/values.h \
	engine/equalize/balance.c engine/equalize/balance.h \
	engine/equalize/chain.c engine/equalize/chain.h \
	engine/equalize/equalize.c engine/equalize/equalize.h \
	engine/equalize/multiply.c engine/equalize/multiply.h \
	engine/equalize/pairs.c engine/equalize/pairs.h \
	engine/equalize/pass.c engine/equalize/pass.h \
	engine/equalize/readers.c engine/equalize/readers.h \
	engine/equalize/rescale.c engine/equalize/rescale.h \
	engine/equalize/weight.c engine/equalize/weight.h \
	engine/evaluate/alone.c engine/evaluate/alone.h \
	engine/evaluate/classes.c engine/evaluate/classes.h \
	engine/evaluate/compared.c engine/evaluate/compared.h \
	engine/evaluate/deployed.c engine/evaluate/deployed.h \
	engine/evaluate/enough.c engine/evaluate/enough.h \
	engine/evaluate/evaluate.c engine/evaluate/evaluate.h \
	engine/evaluate/kernels.c engine/evaluate/kernels.h \
	engine/evaluate/metrics.c engine/evaluate/metrics.h \
	engine/evaluate/judged.c engine/evaluate/judged.h \
	engine/evaluate/reference.c engine/evaluate/reference.h \
	engine/evaluate/traced.c engine/evaluate/traced.h \
	engine/profile/pace.c engine/profile/pace.h \
	engine/profile/profile.c engine/profile/profile.h \
	engine/profile/sides.c engine/profile/sides.h \
	engine/run/trace.c engine/run/trace.h \
	engine/judge/candidates.c engine/judge/candidates.h \
	engine/judge/judge.c engine/judge/judge.h \
	engine/judge/grade.h \
	engine/job/choose_device.c \
	engine/job/engine.c \
	engine/job/histograms.c engine/job/histograms.h \
	engine/job/job.c engine/job/job.h \
	engine/job/kept.c engine/job/kept.h \
	engine/job/report.c \
	engine/job/roundings.c engine/job/roundings.h \
	engine/job/runtimes.c \
	engine/layers/bias.c engine/layers/bias.h \
	engine/layers/classes.c engine/layers/classes.h \
	engine/layers/fused.c engine/layers/fused.h \
	engine/layers/kernels.c engine/layers/kernels.h \
	engine/layers/layers.c engine/layers/layers.h \
	engine/layers/patterns.c engine/layers/patterns.h \
	engine/layers/spectra.c engine/layers/spectra.h \
	engine/model/constant.c engine/model/constant.h \
	engine/model/derive.c engine/model/derive.h \
	engine/model/external.c engine/model/external.h \
	engine/model/file_sink.c engine/model/file_sink.h \
	engine/model/fixed.c \
	engine/model/graph.c \
	engine/model/info.c \
	engine/model/limits.c \
	engine/model/mapped.c engine/model/mapped.h \
	engine/model/model.c engine/model/model.h \
	engine/model/open.c \
	engine/model/order.c \
	engine/model/scopes.c \
	engine/model/skeleton.c engine/model/skeleton.h \
	engine/model/tensors.c engine/model/tensors.h \
	engine/model/types.c \
	engine/model/view.c engine/model/view.h \
	engine/model/write.c engine/model/write.h \
	engine/number/both.h \
	engine/number/fake.c engine/number/fake.h \
	engine/number/float16.c engine/number/float16.h \
	engine/number/format.c engine/number/format.h \
	engine/number/half.c engine/number/half.h \
	engine/number/histogram.c engine/number/histogram.h \
	engine/number/minmax.c engine/number/minmax.h \
	engine/number/lanes.c engine/number/lanes.h \
	engine/number/moment.c engine/number/moment.h \
	engine/number/noise.c engine/number/noise.h \
	engine/number/products.c engine/number/products.h \
	engine/number/pack_lanes.h \
	engine/number/params.c engine/number/params.h \
	engine/number/simd.c engine/number/simd.h \
	engine/plan/decide.c engine/plan/planner.h \
	engine/plan/float16_nodes.c engine/plan/float16_nodes.h \
	engine/plan/formats.c engine/plan/formats.h \
	engine/plan/idle_support.c \
	engine/plan/lint.c engine/plan/lint.h \
	engine/plan/outputs.c engine/plan/outputs.h \
	engine/plan/plan.c engine/plan/plan.h \
	engine/plan/residual.c engine/plan/residual.h \
	engine/plan/rules.c engine/plan/rules.h \
	engine/plan/saturation.c engine/plan/saturation.h \
	engine/plan/select.c engine/plan/select.h \
	engine/plan/spec.c \
	engine/plan/target.h \
	engine/plan/targets.c \
	engine/plan/targets/onnxruntime_gain.c engine/plan/targets/onnxruntime_gain.h \
	engine/plan/targets/tensorrt.h engine/plan/targets/tensorrt_lint.c \
	engine/prepare/adapt.c engine/prepare/adapt.h \
	engine/prepare/adapters.c \
	engine/prepare/fold.c engine/prepare/fold.h \
	engine/prepare/join_gates.c engine/prepare/join_gates.h \
	engine/prepare/make_biases.c engine/prepare/make_biases.h \
	engine/prepare/functions.c engine/prepare/functions.h \
	engine/prepare/inline.c \
	engine/prepare/value_types.c engine/prepare/value_types.h \
	engine/prepare/nodes.c engine/prepare/nodes.h \
	engine/prepare/opset.c engine/prepare/opset.h \
	engine/prepare/prepare.c engine/prepare/prepare.h \
	engine/prepare/convert_opset.c engine/prepare/convert_opset.h \
	engine/prepare/remove_pairs.c engine/prepare/remove_pairs.h \
	engine/quantize.c \
	$(RANGE_METHODS) \
	engine/range/identity.c \
	engine/range/method.c engine/range/method.h \
	engine/range/observations.c engine/range/observations.h \
	engine/range/observer.c engine/range/observer.h \
	engine/range/outline.c engine/range/outline.h \
	engine/range/patches.c engine/range/patches.h \
	engine/range/shifts.c engine/range/shifts.h \
	engine/range/peaks.c engine/range/peaks.h \
	engine/recipe/advise.c engine/recipe/advise.h \
	engine/recipe/estimate.c engine/recipe/estimate.h \
	engine/recipe/faults.c engine/recipe/faults.h \
	engine/recipe/goals.c engine/recipe/goals.h \
	engine/recipe/groups.c engine/recipe/groups.h \
	engine/recipe/recipe.c engine/recipe/recipe.h \
	engine/recipe/variants.c engine/recipe/variants.h \
	engine/remake/remake.c engine/remake/remake.h \
	engine/replan/replan.c engine/replan/replan.h \
	engine/rewrite/blocked.c engine/rewrite/blocked.h \
	engine/rewrite/insert.c engine/rewrite/insert.h \
	engine/rewrite/dynamic.c engine/rewrite/dynamic.h \
	engine/rewrite/insert_fakes.c engine/rewrite/insert_sinks.c \
	engine/rewrite/pairs.h \
	engine/rewrite/split.c engine/rewrite/split.h \
	engine/rewrite/to_float16.c engine/rewrite/to_float16.h \
	engine/rewrite/twin.c engine/rewrite/twin.h \
	engine/run/compare.c engine/run/compare.h engine/run/compare_op.h \
	engine/run/compare_cuda.c engine/run/compare_cuda.h \
	engine/run/fake.c engine/run/fake.h \
	engine/run/fake_cuda.c engine/run/fake_cuda.h \
	engine/run/lift_weights.c engine/run/lift_weights.h \
	engine/run/moments.c engine/run/moments.h \
	engine/run/moments_cuda.c engine/run/moments_cuda.h \
	engine/run/peaks.c engine/run/peaks.h \
	engine/run/runtime.c engine/run/runtime.h \
	engine/run/observe.c engine/run/observe.h \
	engine/run/observe_cuda.c engine/run/observe_cuda.h \
	engine/run/op.c engine/run/op.h \
	engine/run/device_memory.c engine/run/device_memory.h \
	engine/run/cuda_provider.c engine/run/cuda_provider.h \
	engine/run/session.c engine/run/session.h \
	engine/run/staging.c engine/run/staging.h \
	engine/scale/bias.c engine/scale/bias.h \
	engine/scale/correct.c engine/scale/correct.h \
	engine/scale/matrix.c engine/scale/matrix.h \
	engine/scale/precision.c engine/scale/precision.h \
	engine/scale/round.c engine/scale/round.h \
	engine/scale/scale.c engine/scale/scale.h \
	engine/tbl/dtypes.h \
	engine/tbl/float16_ops.h \
	engine/tbl/kernels.h \
	engine/tbl/layers.h \
	engine/tbl/operands.h \
	engine/tbl/opsets.h \
	engine/tbl/types.h \
	engine/smooth/magnitudes.c engine/smooth/magnitudes.h \
	engine/smooth/smooth.c engine/smooth/smooth.h \
	engine/weights/blocks.c engine/weights/blocks.h \
	engine/weights/approximate.c engine/weights/approximate.h \
	engine/weights/float16_data.c engine/weights/float16_data.h \
	engine/weights/updates.c engine/weights/updates.h \
	engine/weights/gptq.c engine/weights/gptq.h \
	engine/weights/panel.h \
	engine/weights/elements.c engine/weights/elements.h \
	engine/weights/factor.c \
	engine/weights/refine.c \
	engine/weights/integers.c engine/weights/integers.h \
	engine/weights/least_error.c \
	engine/weights/pairs.c engine/weights/pairs.h \
	engine/weights/scales.c engine/weights/scales.h \
	engine/weights/walk.c engine/weights/walk.h \
	engine/whatif/greedy.c engine/whatif/greedy.h \
	engine/whatif/parts.c engine/whatif/parts.h \
	engine/whatif/refine.c engine/whatif/refine.h \
	engine/whatif/search.c engine/whatif/search.h \
	engine/whatif/sensitivity.c engine/whatif/sensitivity.h \
	engine/whatif/trials.c engine/whatif/trials.h \
	engine/whatif/whatif.c engine/whatif/whatif.h

# The targets, in the order of GET /v1/targets; the first is that of a spec without one.
# Each becomes a row TARGET(name), by the name of its file; docs/adding-a-target.md.
TARGETS = \
	engine/plan/targets/tensorrt.c \
	engine/plan/targets/onnxruntime.c \
	engine/plan/targets/openvino.c
engine_libqdqi_la_SOURCES += $(TARGETS)
BUILT_SOURCES += engine/targets.inc
CLEANFILES += engine/targets.inc
engine/targets.inc: $(top_srcdir)/engine/local.mk
	$(AM_V_GEN)$(MKDIR_P) engine && \
	for file in $(TARGETS); do \
		printf 'TARGET(%s)\n' "$$(basename "$$file" .c)" || exit 1; \
	done >$@.tmp && \
	mv $@.tmp $@
nodist_engine_libqdqi_la_SOURCES = engine/model/onnx.pb-c.c

# The parser comes from the schema that libonnx-dev installs, not from a copy of it.
BUILT_SOURCES += engine/model/onnx.pb-c.h
CLEANFILES += engine/model/onnx.pb-c.c engine/model/onnx.pb-c.h
engine/model/onnx.pb-c.c: engine/model/onnx.pb-c.h
engine/model/onnx.pb-c.h: $(ONNX_PROTO_DIR)/onnx.proto
	$(AM_V_GEN)$(MKDIR_P) engine/model && \
	$(PROTOC_C) --proto_path=$(ONNX_PROTO_DIR) --c_out=engine/model onnx.proto

# The range methods, in the order in which messages name them: this list is their table.
# engine/range/methods.inc gets a row METHOD(NAME) for each file NAME.c;
# docs/adding-a-range-method.md.
RANGE_METHODS = \
	engine/range/minmax.c \
	engine/range/moving_average.c \
	engine/range/percentile.c \
	engine/range/entropy.c \
	engine/range/mse.c \
	engine/range/output_mse.c
BUILT_SOURCES += engine/range/methods.inc
CLEANFILES += engine/range/methods.inc
engine/range/methods.inc: $(srcdir)/engine/local.mk
	$(AM_V_GEN)$(MKDIR_P) engine/range && \
	for file in $(RANGE_METHODS); do \
		echo "METHOD($$(basename "$$file" .c))" || exit 1; \
	done >$@.tmp && \
	mv $@.tmp $@

# The library's insertion cases: all scripts of the folder, sorted by name;
# docs/adding-a-case.md. Each becomes a row CASE("name", "info", "script"): the script line by
# line, with what C would read escaped, and what stands between the [[ and ]] of its info.
LIBRARY_CASES = $(sort $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/engine/cases/*.lua)))
EXTRA_DIST += $(LIBRARY_CASES)
BUILT_SOURCES += engine/cases/library.inc
CLEANFILES += engine/cases/library.inc
engine/cases/library.inc: $(LIBRARY_CASES) $(srcdir)/engine/cases
	$(AM_V_GEN)$(MKDIR_P) engine/cases && \
	for file in $(LIBRARY_CASES); do \
		script="$(top_srcdir)/$$file" && \
		printf 'CASE("%s",\n' "$$(basename "$$file" .lua)" && \
		sed -n '/info = \[\[/,/\]\]/p' "$$script" | tr '\n' ' ' | \
			sed -e 's/.*\[\[ *//' -e 's/ *\]\].*//' -e 's/  */ /g' \
				-e 's/[\\"]/\\&/g' -e 's/.*/"&",/' && \
		echo && \
		sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' "$$script" && \
		echo ')' || exit 1; \
	done >$@.tmp && \
	mv $@.tmp $@

# The library that is installed: the same code, of which only qdq_* is visible.
engine_libqdq_la_SOURCES =
engine_libqdq_la_LIBADD = engine/libqdqi.la ondemand/libarchives.la
engine_libqdq_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 \
	-export-symbols-regex '^qdq_' -Wl,--no-undefined

include engine/cuda/local.mk
include engine/data.mk
