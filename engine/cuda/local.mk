# The CUDA module: device code and what launches it, loaded by device.c when a device is
# asked for. The rest of the engine is built and works without it.
KERNEL_INCLUDES = \
	engine/cuda/api.h \
	engine/cuda/element.h \
	engine/cuda/kernels.h \
	engine/cuda/launch.h
KERNEL_FILES = \
	engine/cuda/extremes.cu \
	engine/cuda/fake.cu \
	engine/cuda/histogram.cu \
	engine/cuda/moment.cu \
	engine/cuda/module.cu \
	engine/cuda/sums.cu
KERNEL_OBJECTS = $(KERNEL_FILES:.cu=.o)
EXTRA_DIST += $(KERNEL_FILES) engine/cuda/launch.h m4/cuda.m4

# nvcc.flags: every operation rounded as the CPU does it, none fused, subnormals kept;
# machine code for each generation in one module, and PTX of the newest for those that are
# still to come. link.flags: CUDA's runtime library and that of C++ are linked in, so that
# the module needs the driver and nothing else.
NVCC_FLAGS_FILE = $(top_srcdir)/engine/cuda/nvcc.flags
NVCC_LINK_FILE = $(top_srcdir)/engine/cuda/link.flags
EXTRA_DIST += engine/cuda/nvcc.flags engine/cuda/link.flags

if HAVE_CUDA
cudadir = $(libdir)/qdqd
cuda_DATA = engine/cuda/qdq_cuda.so
CLEANFILES += $(KERNEL_OBJECTS) engine/cuda/qdq_cuda.so

SUFFIXES = .cu
.cu.o:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(NVCC) --options-file $(NVCC_FLAGS_FILE) $(NVCCFLAGS) $(ENGINE_CPPFLAGS) \
		-c $< -o $@
$(KERNEL_OBJECTS): $(NVCC_FLAGS_FILE) $(KERNEL_INCLUDES) engine/number/both.h engine/number/format.h \
	engine/number/histogram.h engine/number/minmax.h engine/include/qdq/formats.h
engine/cuda/qdq_cuda.so: $(NVCC_LINK_FILE) $(KERNEL_OBJECTS)
	$(AM_V_GEN)$(NVCC) --options-file $(NVCC_LINK_FILE) $(KERNEL_OBJECTS) -o $@
endif
