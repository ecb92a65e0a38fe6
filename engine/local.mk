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
	engine/include/qdq/runtime.h \
	engine/include/qdq/spec.h \
	engine/include/qdq/stages.h \
	engine/include/qdq/targets.h \
	engine/include/qdq/tokenizer.h \
	engine/include/qdq/words.h

ENGINE_CPPFLAGS = $(QDQ_INCLUDE) -I$(top_srcdir)/engine

# All of the engine, with its internals reachable for the unit tests.
engine_libqdqi_la_CPPFLAGS = $(ENGINE_CPPFLAGS) -I$(top_builddir)/engine/files/model \
	-I$(top_builddir)/engine \
	$(PROTOBUF_C_CFLAGS) $(LIBZIP_CFLAGS) $(LIBARCHIVE_CFLAGS) $(LIBJPEG_CFLAGS) \
	$(LIBPNG_CFLAGS) $(SNAPPY_CFLAGS) $(ZSTD_CFLAGS) $(ZLIB_CFLAGS) $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS) \
	$(LUA_CFLAGS) $(ORT_CFLAGS)
# Loops over floats are written to vectorize; -O2 alone does not try hard, and it minds
# the flags that a comparison may raise, which nobody looks at. Products and sums are not
# fused, so that all processors compute the same bits.
engine_libqdqi_la_CFLAGS = $(AM_CFLAGS) -ftree-vectorize $(VECTORIZE_CFLAGS) \
	-fno-trapping-math -ffp-contract=off
# libzip, libarchive, libjpeg, libpng, libsnappy, libzstd, libpcre2-8 and libutf8proc come from those
# who link this: libqdq loads them late.
engine_libqdqi_la_LIBADD = $(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(LUA_LIBS) -lm -ldl
engine_libqdqi_la_SOURCES = \
	engine/plan/gates/gates.c engine/plan/gates/gates.h \
	engine/plan/gates/judged.c engine/plan/gates/judged.h \
	engine/plan/gates/verdict.c engine/plan/gates/verdict.h \
	engine/ground/base/arena.c engine/ground/base/arena.h \
	engine/ground/base/dtype.c engine/ground/base/dtype.h \
	engine/ground/base/error.c engine/ground/base/errors.h \
	engine/ground/base/glob.c engine/ground/base/glob.h \
	engine/ground/base/host.c engine/ground/base/host.h \
	engine/ground/base/map.c engine/ground/base/map.h \
	engine/ground/base/order.h \
	engine/ground/base/seconds.c engine/ground/base/seconds.h \
	engine/ground/base/tasks.c engine/ground/base/tasks.h \
	engine/ground/base/text.c \
	engine/ground/base/unused.c engine/ground/base/unused.h \
	engine/ground/base/build_id.h engine/ground/base/version.c \
	engine/ground/base/warnings.c engine/ground/base/warnings.h \
	engine/ground/base/words.c \
	engine/ground/base/zeros.c engine/ground/base/zeros.h \
	engine/stages/calibrate/calibrate.c engine/stages/calibrate/calibrate.h \
	engine/stages/calibrate/nonfinite.c engine/stages/calibrate/nonfinite.h \
	engine/stages/calibrate/moments.c engine/stages/calibrate/moments.h \
	engine/stages/calibrate/parallel.c engine/stages/calibrate/parallel.h \
	engine/plan/cases/bind.c engine/plan/cases/bind.h \
	engine/plan/cases/case.c engine/plan/cases/case.h \
	engine/plan/cases/catalog_folder.c engine/plan/cases/catalog_inner.h \
	engine/plan/cases/catalog.c engine/plan/cases/catalog.h \
	engine/plan/cases/entries.c engine/plan/cases/entries.h \
	engine/plan/cases/lib_base.c engine/plan/cases/lib_string.c engine/plan/cases/lib_table.c \
	engine/plan/cases/tamed.c \
	engine/plan/cases/libs.h \
	engine/plan/cases/sandbox.c engine/plan/cases/sandbox.h \
	engine/plan/cases/script.c engine/plan/cases/script.h \
	engine/numbers/cuda/api.h \
	engine/numbers/cuda/device.c engine/numbers/cuda/device.h \
	engine/numbers/cuda/element.h \
	engine/numbers/cuda/kernels.h \
	engine/runtimes/common/deploy.c engine/runtimes/common/deploy.h \
	engine/runtimes/common/kernel_names.c engine/runtimes/common/kernel_names.h \
	engine/runtimes/common/whole.c engine/runtimes/common/whole.h \
	engine/runtimes/device.c \
	engine/runtimes/engine.c engine/runtimes/engine.h \
	engine/runtimes/process/calls.c \
	engine/runtimes/process/remote.c engine/runtimes/process/remote.h \
	engine/runtimes/process/serve.c engine/runtimes/process/serve.h \
	engine/runtimes/process/served.c engine/runtimes/process/served.h \
	engine/runtimes/process/wire.c engine/runtimes/process/wire.h \
	engine/runtimes/rows.c \
	engine/runtimes/slots.c \
	engine/graph/edit/carried.c \
	engine/graph/edit/edit.c engine/graph/edit/edit.h \
	engine/graph/edit/merge.c \
	engine/graph/edit/state.h \
	engine/graph/edit/tensors.c \
	engine/graph/edit/unused.c \
	engine/transform/equalize/axis.c engine/transform/equalize/axis.h \
	engine/transform/equalize/labels.c engine/transform/equalize/labels.h \
	engine/transform/equalize/values.c engine/transform/equalize/values.h \
	engine/transform/equalize/balance.c engine/transform/equalize/balance.h \
	engine/transform/equalize/chain.c engine/transform/equalize/chain.h \
	engine/transform/equalize/equalize.c engine/transform/equalize/equalize.h \
	engine/transform/equalize/pairs.c engine/transform/equalize/pairs.h \
	engine/transform/equalize/pass.c engine/transform/equalize/pass.h \
	engine/transform/equalize/readers.c engine/transform/equalize/readers.h \
	engine/transform/equalize/rescale.c engine/transform/equalize/rescale.h \
	engine/transform/equalize/weight.c engine/transform/equalize/weight.h \
	engine/stages/task/resampling.c engine/stages/task/resampling.h \
	engine/stages/task/gathered.c engine/stages/task/gathered.h \
	engine/stages/task/judge.c engine/stages/task/judge.h \
	engine/stages/task/labelled.c engine/stages/task/labelled.h \
	engine/stages/task/confusions.c engine/stages/task/confusions.h \
	engine/stages/task/metric.c engine/stages/task/metric.h \
	engine/stages/task/task.c engine/stages/task/task.h \
	engine/stages/plausible/checks.c engine/stages/plausible/checks.h \
	engine/stages/plausible/figures.c engine/stages/plausible/figures.h \
	engine/stages/plausible/layout.c engine/stages/plausible/layout.h \
	engine/stages/plausible/plausible.c engine/stages/plausible/plausible.h \
	engine/stages/plausible/probe.c engine/stages/plausible/probe.h \
	engine/stages/evaluate/deployed_first.c engine/stages/evaluate/deployed_first.h \
	engine/stages/evaluate/dequantized.c engine/stages/evaluate/dequantized.h \
	engine/stages/evaluate/choices.c engine/stages/evaluate/choices.h \
	engine/stages/slices/classes.c engine/stages/slices/classes.h \
	engine/stages/evaluate/output_figures.c engine/stages/evaluate/output_figures.h \
	engine/stages/evaluate/deployed.c engine/stages/evaluate/deployed.h \
	engine/stages/evaluate/sample_choice.c engine/stages/evaluate/sample_choice.h \
	engine/stages/evaluate/scatter.c engine/stages/evaluate/scatter.h \
	engine/stages/evaluate/evaluate.c engine/stages/evaluate/evaluate.h \
	engine/stages/evaluate/language.c engine/stages/evaluate/language.h \
	engine/stages/evaluate/kernels/counted_model.c engine/stages/evaluate/kernels/counted_model.h \
	engine/stages/evaluate/kernels/kernels.c engine/stages/evaluate/kernels/kernels.h \
	engine/stages/evaluate/kept_figures.c engine/stages/evaluate/kept_figures.h \
	engine/stages/evaluate/literal.c engine/stages/evaluate/literal.h \
	engine/stages/evaluate/metrics.c engine/stages/evaluate/metrics.h \
	engine/stages/slices/joined_parts.c engine/stages/slices/joined_parts.h \
	engine/stages/slices/node_values.c engine/stages/slices/node_values.h \
	engine/stages/slices/static_shape.c engine/stages/slices/static_shape.h \
	engine/stages/evaluate/judgement_warnings.c \
	engine/stages/evaluate/judgement_warnings.h \
	engine/stages/slices/marks.c engine/stages/slices/marks.h \
	engine/stages/slices/output_slices.c engine/stages/slices/output_slices.h \
	engine/stages/slices/slice_sums.c engine/stages/slices/slice_sums.h \
	engine/stages/evaluate/sequential.c engine/stages/evaluate/sequential.h \
	engine/stages/evaluate/stopping.c engine/stages/evaluate/stopping.h \
	engine/stages/evaluate/sample_figures.c engine/stages/evaluate/sample_figures.h \
	engine/stages/evaluate/last_candidate.c engine/stages/evaluate/last_candidate.h \
	engine/stages/evaluate/reference.c engine/stages/evaluate/reference.h \
	engine/stages/evaluate/kernels/traced_kernels.c engine/stages/evaluate/kernels/traced_kernels.h \
	engine/stages/attempt/kept_keys.c \
	engine/stages/attempt/journal.c engine/stages/attempt/journal.h \
	engine/stages/attempt/kept_text.c engine/stages/attempt/kept_text.h \
	engine/stages/attempt/kept_times.c engine/stages/attempt/kept_times.h \
	engine/stages/profile/pace.c engine/stages/profile/pace.h \
	engine/stages/profile/profile.c engine/stages/profile/profile.h \
	engine/stages/profile/timed_models.c engine/stages/profile/timed_models.h \
	engine/run/session/fused_pairs.c engine/run/session/fused_pairs.h \
	engine/run/session/trace.c engine/run/session/trace.h \
	engine/stages/attempt/attempt.c engine/stages/attempt/attempt.h \
	engine/stages/attempt/context.c engine/stages/attempt/context.h \
	engine/stages/attempt/device.c \
	engine/stages/attempt/float_outputs.c engine/stages/attempt/float_outputs.h \
	engine/stages/attempt/leave.c engine/stages/attempt/leave.h \
	engine/stages/attempt/memory.c engine/stages/attempt/memory.h \
	engine/stages/attempt/observations_file.c engine/stages/attempt/observations_file.h \
	engine/stages/attempt/roundings.c engine/stages/attempt/roundings.h \
	engine/stages/attempt/warnings.c engine/stages/attempt/warnings.h \
	engine/stages/candidates/candidates.c engine/stages/candidates/candidates.h \
	engine/stages/candidates/candidate_file.c engine/stages/candidates/candidate_file.h \
	engine/stages/candidates/judged_files.c engine/stages/candidates/judged_files.h \
	engine/stages/candidates/grade.c engine/stages/candidates/grade.h \
	engine/stages/candidates/comparer.c engine/stages/candidates/comparer.h \
	engine/stages/report/histograms.c engine/stages/report/histograms.h \
	engine/stages/report/report.c engine/stages/report/report.h \
	engine/stages/report/stored_twice.c \
	engine/graph/layers/bias.c engine/graph/layers/bias.h \
	engine/graph/layers/caches.c engine/graph/layers/caches.h \
	engine/graph/layers/classes.c engine/graph/layers/classes.h \
	engine/graph/layers/infinities.c engine/graph/layers/infinities.h \
	engine/graph/layers/layers.c engine/graph/layers/layers.h \
	engine/graph/layers/moment_form.c engine/graph/layers/moment_form.h \
	engine/graph/layers/operators.c engine/graph/layers/operators.h \
	engine/graph/layers/rows.h \
	engine/files/model/constant.c engine/files/model/constant.h \
	engine/files/model/external.c engine/files/model/external.h \
	engine/files/model/file_sink.c engine/files/model/file_sink.h \
	engine/files/model/fixed.c \
	engine/files/model/graph.c \
	engine/files/model/info.c \
	engine/files/model/limits.c \
	engine/files/model/mapped.c engine/files/model/mapped.h \
	engine/files/model/model.c engine/files/model/model.h \
	engine/files/model/open.c \
	engine/files/model/other_files.c engine/files/model/other_files.h \
	engine/files/model/order.c \
	engine/files/model/scopes.c \
	engine/files/model/skeleton.c engine/files/model/skeleton.h \
	engine/files/model/tensors.c \
	engine/files/model/types.c \
	engine/files/model/view.c \
	engine/files/model/write.c engine/files/model/write.h \
	engine/numbers/arithmetic/both.h \
	engine/numbers/arithmetic/fake.c engine/numbers/arithmetic/fake.h \
	engine/numbers/arithmetic/float16.c engine/numbers/arithmetic/float16.h \
	engine/numbers/arithmetic/format.c engine/numbers/arithmetic/format.h \
	engine/numbers/arithmetic/half.c engine/numbers/arithmetic/half.h \
	engine/numbers/arithmetic/histogram.c engine/numbers/arithmetic/histogram.h \
	engine/numbers/arithmetic/minmax.c engine/numbers/arithmetic/minmax.h \
	engine/numbers/arithmetic/lanes.c engine/numbers/arithmetic/lanes.h \
	engine/numbers/arithmetic/moment.c engine/numbers/arithmetic/moment.h \
	engine/numbers/arithmetic/noise.c engine/numbers/arithmetic/noise.h \
	engine/numbers/arithmetic/products.c engine/numbers/arithmetic/products.h \
	engine/numbers/arithmetic/packed.h engine/numbers/arithmetic/params.c engine/numbers/arithmetic/params.h \
	engine/numbers/arithmetic/simd.c engine/numbers/arithmetic/simd.h \
	engine/plan/placement/branches.c engine/plan/placement/branches.h \
	engine/plan/placement/decide.c engine/plan/placement/planner.h \
	engine/plan/placement/float16_nodes.c engine/plan/placement/float16_nodes.h \
	engine/plan/placement/formats.c engine/plan/placement/formats.h \
	engine/plan/placement/idle_support.c \
	engine/plan/placement/carried_weights.c engine/plan/placement/carried_weights.h \
	engine/plan/placement/kept_weights.c engine/plan/placement/kept_weights.h \
	engine/plan/placement/layer_formats.c engine/plan/placement/layer_formats.h \
	engine/plan/placement/lint.c engine/plan/placement/lint.h \
	engine/plan/placement/masked_sums.c engine/plan/placement/masked_sums.h \
	engine/plan/placement/moment_memory.c engine/plan/placement/moment_memory.h \
	engine/plan/placement/sampled_moments.c engine/plan/placement/sampled_moments.h \
	engine/plan/placement/zero_points.c engine/plan/placement/zero_points.h \
	engine/plan/placement/outputs.c engine/plan/placement/outputs.h \
	engine/plan/placement/plan.c engine/plan/placement/plan.h engine/plan/placement/planner.c \
	engine/plan/placement/rules.c engine/plan/placement/rules.h \
	engine/plan/placement/select.c engine/plan/placement/select.h \
	engine/plan/placement/spec.c \
	engine/plan/placement/target.h \
	engine/plan/targets/targets.c \
	engine/plan/targets/targets.h \
	engine/plan/targets/onnxruntime/faults.h \
	engine/plan/targets/onnxruntime/forms.c \
	engine/plan/targets/onnxruntime/gain.c \
	engine/plan/targets/onnxruntime/given_nodes.c \
	engine/plan/targets/onnxruntime/hindrances.c \
	engine/plan/targets/onnxruntime/integer_paths.c engine/plan/targets/onnxruntime/integer_paths.h \
	engine/plan/targets/onnxruntime/kernel_blocks.c \
	engine/plan/targets/onnxruntime/kernels.c engine/plan/targets/onnxruntime/kernels.h \
	engine/plan/targets/onnxruntime/layer_rows.c \
	engine/plan/targets/onnxruntime/onnxruntime.h \
	engine/plan/targets/onnxruntime/outputs.c \
	engine/plan/targets/openvino/faults.h \
	engine/plan/targets/openvino/forms.c \
	engine/plan/targets/openvino/given_nodes.c \
	engine/plan/targets/openvino/openvino.h \
	engine/plan/targets/openvino/vetoes.c \
	engine/plan/targets/openvino/wrong_numbers.c \
	engine/plan/targets/qnn/conversions.c \
	engine/plan/targets/qnn/faults.h \
	engine/plan/targets/qnn/forms.c \
	engine/plan/targets/qnn/gelu.c \
	engine/plan/targets/qnn/hindrances.c \
	engine/plan/targets/qnn/joined.c \
	engine/plan/targets/qnn/layer_rows.c \
	engine/plan/targets/qnn/lints.c \
	engine/plan/targets/qnn/outputs.c \
	engine/plan/targets/qnn/qnn.h \
	engine/plan/targets/qnn/tables.c \
	engine/plan/targets/shared/plain_forms.c engine/plan/targets/shared/plain_forms.h \
	engine/plan/targets/shared/kept_axes.c engine/plan/targets/shared/kept_axes.h \
	engine/plan/targets/shared/tied.c engine/plan/targets/shared/tied.h \
	engine/plan/targets/shared/saturation.c engine/plan/targets/shared/saturation.h \
	engine/plan/targets/shared/squares.c engine/plan/targets/shared/squares.h \
	engine/plan/targets/tensorrt/formats.c \
	engine/plan/targets/tensorrt/in_onnxruntime.c \
	engine/plan/targets/tensorrt/int8_readers.c \
	engine/plan/targets/tensorrt/lints.c \
	engine/plan/targets/tensorrt/patterns.c engine/plan/targets/tensorrt/patterns.h \
	engine/plan/targets/tensorrt/residual.c \
	engine/plan/targets/tensorrt/tensorrt.h \
	engine/transform/prepare/adapt.c engine/transform/prepare/adapt.h \
	engine/transform/prepare/adapters.c \
	engine/transform/prepare/fold.c \
	engine/transform/prepare/compute.c \
	engine/transform/prepare/compute.h \
	engine/transform/prepare/compute_weights.c \
	engine/transform/prepare/named.c \
	engine/transform/prepare/named.h \
	engine/transform/prepare/unfuse_attention.c engine/transform/prepare/unfuse_attention.h \
	engine/transform/prepare/uncarry.c \
	engine/transform/prepare/unfuse.c \
	engine/transform/prepare/make_biases.c \
	engine/transform/prepare/functions.c engine/transform/prepare/functions.h \
	engine/transform/prepare/inline.c \
	engine/transform/prepare/value_types.c engine/transform/prepare/value_types.h \
	engine/transform/prepare/nodes.h \
	engine/transform/prepare/opset.c \
	engine/transform/prepare/prepare.c engine/transform/prepare/prepare.h \
	engine/transform/prepare/convert_opset.c engine/transform/prepare/convert_opset.h \
	engine/transform/prepare/lower_opset.c engine/transform/prepare/lower_opset.h \
	engine/transform/prepare/einsum.c \
	engine/transform/prepare/reform.c engine/transform/prepare/tie.c \
	engine/transform/prepare/remove_pairs.c \
	engine/quantize.c \
	$(RANGE_METHODS) \
	engine/numbers/range/identity.c \
	engine/numbers/range/method.c engine/numbers/range/method.h \
	engine/numbers/range/observations.c engine/numbers/range/observations.h \
	engine/numbers/range/observer.c engine/numbers/range/observer.h \
	engine/numbers/range/outline.c engine/numbers/range/outline.h \
	engine/numbers/range/patches.c engine/numbers/range/patches.h \
	engine/numbers/range/seen_range.c \
	engine/numbers/range/shifts.c engine/numbers/range/shifts.h \
	engine/numbers/range/peaks.c engine/numbers/range/peaks.h \
	engine/stages/recipe/advise.c engine/stages/recipe/advise.h \
	engine/stages/recipe/allocate.c engine/stages/recipe/allocate.h \
	engine/stages/recipe/format_noise.c engine/stages/recipe/format_noise.h \
	engine/stages/recipe/loadable.c engine/stages/recipe/loadable.h \
	engine/stages/recipe/by_patterns.c engine/stages/recipe/by_patterns.h \
	engine/stages/recipe/estimate.c engine/stages/recipe/estimate.h \
	engine/stages/recipe/mend.c engine/stages/recipe/mend.h \
	engine/stages/recipe/likely_causes.c engine/stages/recipe/likely_causes.h \
	engine/stages/recipe/goals.c engine/stages/recipe/goals.h \
	engine/stages/recipe/groups.c engine/stages/recipe/groups.h \
	engine/stages/recipe/fastest_choice.c engine/stages/recipe/fastest.c engine/stages/recipe/fastest.h \
	engine/stages/recipe/frontier.c engine/stages/recipe/frontier.h \
	engine/stages/frontier/costs.c engine/stages/frontier/costs.h \
	engine/stages/frontier/cut.c engine/stages/frontier/cut.h \
	engine/stages/frontier/patterns.c engine/stages/frontier/patterns.h \
	engine/stages/frontier/pattern_search.c engine/stages/frontier/pattern_search.h \
	engine/stages/frontier/placement.c engine/stages/frontier/placement.h \
	engine/stages/recipe/recipe.c engine/stages/recipe/recipe.h \
	engine/stages/recipe/unknown_stages.c \
	engine/stages/recipe/unknown_stages.h \
	engine/stages/recipe/variants.c engine/stages/recipe/variants.h \
	engine/stages/recipe/widths.c engine/stages/recipe/widths.h \
	engine/transform/rewrite/blocked.c engine/transform/rewrite/blocked.h \
	engine/transform/rewrite/pairs.c \
	engine/transform/rewrite/insert.c engine/transform/rewrite/insert.h \
	engine/transform/rewrite/dynamic.c engine/transform/rewrite/dynamic.h \
	engine/transform/rewrite/embedding.c engine/transform/rewrite/embedding.h \
	engine/transform/rewrite/tied.c engine/transform/rewrite/tied.h \
	engine/transform/rewrite/table_rows.c engine/transform/rewrite/table_rows.h \
	engine/transform/rewrite/nbits.c engine/transform/rewrite/nbits.h \
	engine/transform/rewrite/insert_fakes.c engine/transform/rewrite/insert_sinks.c \
	engine/transform/rewrite/pairs.h \
	engine/transform/rewrite/split.c engine/transform/rewrite/split.h \
	engine/transform/rewrite/needed_nodes.c engine/transform/rewrite/needed_nodes.h \
	engine/transform/rewrite/taps.c engine/transform/rewrite/taps.h \
	engine/transform/rewrite/to_float16.c engine/transform/rewrite/to_float16.h \
	engine/transform/rewrite/twin.c engine/transform/rewrite/twin.h \
	engine/transform/rewrite/typed_pair.c engine/transform/rewrite/typed_pair.h \
	engine/run/operators/compare.c engine/run/operators/compare.h engine/run/operators/operators.h \
	engine/run/operators/compare_cuda.c engine/run/operators/compare_cuda.h \
	engine/run/operators/fake.c \
	engine/run/operators/fake_cuda.c engine/run/operators/fake_cuda.h \
	engine/run/session/crashes.c engine/run/session/crashes.h \
	engine/run/session/float_weights.c engine/run/session/float_weights.h \
	engine/run/session/data_folder.c engine/run/session/data_folder.h \
	engine/run/session/lift_weights.c engine/run/session/lift_weights.h \
	engine/run/operators/moments.c \
	engine/run/operators/moments_cuda.c engine/run/operators/moments_cuda.h \
	engine/run/session/runtime.c engine/run/session/runtime.h \
	engine/run/operators/observe.c \
	engine/run/operators/observe_cuda.c engine/run/operators/observe_cuda.h \
	engine/run/operators/op.c engine/run/operators/op.h \
	engine/run/operators/device_memory.c engine/run/operators/device_memory.h \
	engine/run/session/provider.c engine/run/session/provider.h \
	engine/run/session/session.c engine/run/session/session.h \
	engine/run/operators/staging.c engine/run/operators/staging.h \
	engine/run/operators/cuda_variants.c engine/run/operators/host_variants.c \
	engine/run/operators/variants.h \
	engine/stages/reconstruct/layers.c engine/stages/reconstruct/layers.h \
	engine/stages/reconstruct/reconstruct.c engine/stages/reconstruct/reconstruct.h \
	engine/stages/reconstruct/round_layer.c engine/stages/reconstruct/round_layer.h \
	engine/stages/reconstruct/row_pairs.c engine/stages/reconstruct/row_pairs.h \
	engine/stages/scale/awq.c engine/stages/scale/awq.h \
	engine/stages/scale/cache_rows.c engine/stages/scale/cache_rows.h \
	engine/stages/scale/kv_cache.c engine/stages/scale/kv_cache.h \
	engine/stages/scale/bias.c engine/stages/scale/bias.h \
	engine/stages/scale/correct.c engine/stages/scale/correct.h \
	engine/stages/scale/fake_weight.c engine/stages/scale/fake_weight.h \
	engine/stages/scale/matrix.c engine/stages/scale/matrix.h \
	engine/stages/scale/precision.c engine/stages/scale/precision.h \
	engine/stages/scale/round.c engine/stages/scale/round.h \
	engine/stages/scale/masks.c engine/stages/scale/masks.h \
	engine/stages/scale/scale.c engine/stages/scale/scale.h \
	engine/ground/tbl/dtypes.h \
	engine/ground/tbl/float16_ops.h \
	engine/ground/tbl/layers.h \
	engine/ground/tbl/later_opsets.h \
	engine/ground/tbl/opsets.h \
	engine/ground/tbl/types.h \
	engine/stages/smooth/magnitudes.c engine/stages/smooth/magnitudes.h \
	engine/stages/smooth/smooth.c engine/stages/smooth/smooth.h \
	engine/graph/weights/block_scales.c engine/graph/weights/block_scales.h \
	engine/graph/weights/blocks.c engine/graph/weights/blocks.h \
	engine/graph/weights/approximate.c engine/graph/weights/approximate.h \
	engine/graph/weights/float16_data.c engine/graph/weights/float16_data.h \
	engine/graph/weights/subtract.c engine/graph/weights/subtract.h \
	engine/graph/weights/updates.c engine/graph/weights/updates.h \
	engine/graph/weights/full_range.c engine/graph/weights/full_range.h \
	engine/graph/weights/gptq.c engine/graph/weights/gptq.h \
	engine/graph/weights/least_squares.c engine/graph/weights/least_squares.h \
	engine/graph/weights/narrow.c engine/graph/weights/panel.h \
	engine/graph/weights/elements.c engine/graph/weights/elements.h \
	engine/graph/weights/factor.c \
	engine/graph/weights/panel_sums.c engine/graph/weights/refine.c \
	engine/graph/weights/integers.c engine/graph/weights/integers.h \
	engine/graph/weights/joint.c engine/graph/weights/joint.h \
	engine/graph/weights/least_error.c \
	engine/graph/weights/pairs.c engine/graph/weights/pairs.h \
	engine/graph/weights/scales.c engine/graph/weights/scales.h \
	engine/graph/weights/walk.c engine/graph/weights/walk.h \
	engine/stages/whatif/greedy.c engine/stages/whatif/greedy.h \
	engine/stages/whatif/parts.c engine/stages/whatif/parts.h \
	engine/stages/whatif/refine.c \
	engine/stages/whatif/search.c \
	engine/stages/whatif/sensitivity.c \
	engine/stages/whatif/replay.c engine/stages/whatif/internals.h \
	engine/stages/whatif/switches.c \
	engine/stages/whatif/whatif.c engine/stages/whatif/whatif.h

# The targets, in the order of GET /v1/targets; the first is that of a spec without one.
# Each becomes a row TARGET(name), by the name of its file, which is that of its folder;
# docs/extend/adding-a-target.md.
TARGETS = \
	engine/plan/targets/tensorrt/tensorrt.c \
	engine/plan/targets/onnxruntime/onnxruntime.c \
	engine/plan/targets/openvino/openvino.c \
	engine/plan/targets/qnn/qnn.c
engine_libqdqi_la_SOURCES += $(TARGETS)
BUILT_SOURCES += engine/targets.inc
CLEANFILES += engine/targets.inc
engine/targets.inc: $(top_srcdir)/engine/local.mk
	$(AM_V_GEN)$(MKDIR_P) engine && \
	for file in $(TARGETS); do \
		printf 'TARGET(%s)\n' "$$(basename "$$file" .c)" || exit 1; \
	done >$@.tmp && \
	mv $@.tmp $@

# The runtimes that judge results, each a folder with a row RUNTIME(name) by the folder's name.
RUNTIMES = onnxruntime openvino
# Those that make machine code: systemd/ has a drop-in for each.
CODE_MAKERS = openvino
engine_libqdqi_la_SOURCES += \
	engine/runtimes/onnxruntime/kernel_names.c \
	engine/runtimes/onnxruntime/onnxruntime.c engine/runtimes/onnxruntime/onnxruntime.h \
	engine/runtimes/openvino/library.c engine/runtimes/openvino/library.h \
	engine/runtimes/openvino/model.c
# The default paths of their libraries, apart from config.h: few files depend on them.
BUILT_SOURCES += generated/libraries.h
CLEANFILES += generated/libraries.h
generated/libraries.h: Makefile
	$(AM_V_GEN)printf '#define QDQ_%s_LIBRARY "%s"\n' ORT '$(ORT_LIBRARY)' OPENVINO '$(OPENVINO_LIBRARY)' >$@
BUILT_SOURCES += engine/runtimes.inc
CLEANFILES += engine/runtimes.inc
engine/runtimes.inc: $(top_srcdir)/engine/local.mk
	$(AM_V_GEN)$(MKDIR_P) engine && \
	for name in $(RUNTIMES); do \
		echo "RUNTIME($$name)" || exit 1; \
	done >$@.tmp && \
	mv $@.tmp $@
nodist_engine_libqdqi_la_SOURCES = engine/files/model/onnx.pb-c.c

# The parser comes from the schema that libonnx-dev installs, not from a copy of it.
BUILT_SOURCES += engine/files/model/onnx.pb-c.h
CLEANFILES += engine/files/model/onnx.pb-c.c engine/files/model/onnx.pb-c.h
engine/files/model/onnx.pb-c.c: engine/files/model/onnx.pb-c.h
engine/files/model/onnx.pb-c.h: $(ONNX_PROTO_DIR)/onnx.proto
	$(AM_V_GEN)$(MKDIR_P) engine/files/model && \
	$(PROTOC_C) --proto_path=$(ONNX_PROTO_DIR) --c_out=engine/files/model onnx.proto

# The range methods, in the order in which messages name them: this list is their table.
# engine/numbers/range/methods.inc gets a row METHOD(NAME) for each file NAME.c;
# docs/extend/adding-a-range-method.md.
RANGE_METHODS = \
	engine/numbers/range/minmax.c \
	engine/numbers/range/moving_average.c \
	engine/numbers/range/percentile.c \
	engine/numbers/range/entropy.c \
	engine/numbers/range/mse.c \
	engine/numbers/range/output_mse.c
BUILT_SOURCES += engine/numbers/range/methods.inc
CLEANFILES += engine/numbers/range/methods.inc
engine/numbers/range/methods.inc: $(srcdir)/engine/local.mk
	$(AM_V_GEN)$(MKDIR_P) engine/numbers/range && \
	for file in $(RANGE_METHODS); do \
		echo "METHOD($$(basename "$$file" .c))" || exit 1; \
	done >$@.tmp && \
	mv $@.tmp $@

# The library's insertion cases: all scripts of the folder, sorted by name;
# docs/extend/adding-a-case.md. Each becomes a row CASE("name", "info", "script"): the script line by
# line, with what C would read escaped, and what stands between the [[ and ]] of its info.
LIBRARY_CASES = $(sort $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/engine/plan/cases/*.lua)))
EXTRA_DIST += $(LIBRARY_CASES)
BUILT_SOURCES += engine/plan/cases/library.inc
CLEANFILES += engine/plan/cases/library.inc
engine/plan/cases/library.inc: $(LIBRARY_CASES) $(srcdir)/engine/plan/cases
	$(AM_V_GEN)$(MKDIR_P) engine/plan/cases && \
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

include engine/numbers/cuda/local.mk
include engine/data.mk
