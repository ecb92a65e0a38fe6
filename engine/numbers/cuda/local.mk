# The CUDA module: device code and what launches it, loaded by device.c when a device is
# asked for. The rest of the engine is built and works without it.
KERNEL_INCLUDES = \
	engine/numbers/cuda/api.h \
	engine/numbers/cuda/element.h \
	engine/numbers/cuda/kernels.h \
	engine/numbers/cuda/launch.h
KERNEL_FILES = \
	engine/numbers/cuda/extremes.cu \
	engine/numbers/cuda/fake.cu \
	engine/numbers/cuda/histogram.cu \
	engine/numbers/cuda/moment.cu \
	engine/numbers/cuda/module.cu \
	engine/numbers/cuda/sums.cu
KERNEL_OBJECTS = $(KERNEL_FILES:.cu=.o)
EXTRA_DIST += $(KERNEL_FILES) engine/numbers/cuda/launch.h m4/cuda.m4

# nvcc.flags: every operation rounded as the CPU does it, none fused, subnormals kept;
# machine code for each generation in one module, and PTX of the newest for those that are
# still to come. link.flags: CUDA's runtime library and that of C++ are linked in, so that
# the module needs the driver and nothing else.
NVCC_FLAGS_FILE = $(top_srcdir)/engine/numbers/cuda/nvcc.flags
NVCC_LINK_FILE = $(top_srcdir)/engine/numbers/cuda/link.flags
EXTRA_DIST += engine/numbers/cuda/nvcc.flags engine/numbers/cuda/link.flags

if HAVE_CUDA
cudadir = $(libdir)/qdqd
cuda_DATA = engine/numbers/cuda/qdq_cuda.so
CLEANFILES += $(KERNEL_OBJECTS) engine/numbers/cuda/qdq_cuda.so

SUFFIXES = .cu
.cu.o:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(NVCC) --options-file $(NVCC_FLAGS_FILE) $(NVCCFLAGS) $(ENGINE_CPPFLAGS) \
		-c $< -o $@
$(KERNEL_OBJECTS): $(NVCC_FLAGS_FILE) $(KERNEL_INCLUDES) engine/numbers/arithmetic/both.h engine/numbers/arithmetic/format.h \
	engine/numbers/arithmetic/histogram.h engine/numbers/arithmetic/minmax.h engine/numbers/arithmetic/noise.h \
	engine/include/qdq/formats.h
engine/numbers/cuda/qdq_cuda.so: $(NVCC_LINK_FILE) $(KERNEL_OBJECTS)
	$(AM_V_GEN)$(NVCC) --options-file $(NVCC_LINK_FILE) $(KERNEL_OBJECTS) -o $@
endif
