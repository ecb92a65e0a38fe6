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
	engine/cuda/module.cu \
	engine/cuda/sums.cu
KERNEL_OBJECTS = $(KERNEL_FILES:.cu=.o)
EXTRA_DIST += $(KERNEL_FILES) engine/cuda/launch.h m4/cuda.m4

# As the CPU computes: every operation rounded, none fused, subnormals kept.
CUDA_FLAGS = -std=c++20 -O3 -fmad=false -prec-div=true -ftz=false \
	-Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra $(CUDA_ARCHES) $(NVCCFLAGS)

if HAVE_CUDA
cudadir = $(libdir)/qdqd
cuda_DATA = engine/cuda/qdq_cuda.so
CLEANFILES += $(KERNEL_OBJECTS) engine/cuda/qdq_cuda.so

SUFFIXES = .cu
.cu.o:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(NVCC) $(CUDA_FLAGS) $(ENGINE_CPPFLAGS) -c $< -o $@
$(KERNEL_OBJECTS): $(KERNEL_INCLUDES) engine/number/both.h engine/number/format.h \
	engine/number/histogram.h engine/number/minmax.h \
	engine/tbl/formats.h
engine/cuda/qdq_cuda.so: $(KERNEL_OBJECTS)
	$(AM_V_GEN)$(NVCC) $(CUDA_LDFLAGS) $(KERNEL_OBJECTS) -o $@
endif
