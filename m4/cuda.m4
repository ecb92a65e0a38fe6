# SPDX-License-Identifier: Apache-2.0
# QDQ_CUDA: --with-cuda, and nvcc where it is.
#
# auto: the CUDA module is built when nvcc is there and makes one, else quietly not.
# nvcc is $NVCC, or the one on the PATH, or below $CUDA_HOME.
AC_DEFUN([QDQ_CUDA], [
AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda=auto|yes|no],
    [build the CUDA module; auto: where nvcc is (auto)])],
  [], [with_cuda=auto])
AC_ARG_VAR([NVCC], [CUDA's compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for it, after ours])
AC_ARG_VAR([CUDA_HOME], [folder of the CUDA toolkit, when nvcc is not on the PATH])

have_cuda=no
AS_IF([test "$with_cuda" != no],
  [AS_IF([test -z "$NVCC"],
     [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR$CUDA_HOME/bin])])
   AS_IF([test -n "$NVCC"],
     [AC_MSG_CHECKING([whether $NVCC makes a module])
      cat >conftest.cu <<'END'
#include <cuda_runtime.h>
#include <stdint.h>
__global__ void kernel(uint32_t *x) { atomicAdd(x, 1u); }
extern "C" int launch(uint32_t *x)
{
    kernel<<<1, 32>>>(x);
    return (int)cudaGetLastError();
}
END
      AS_IF([$NVCC --options-file "$srcdir/engine/numbers/cuda/nvcc.flags" -c conftest.cu \
               -o conftest.o >&AS_MESSAGE_LOG_FD 2>&1 &&
             $NVCC --options-file "$srcdir/engine/numbers/cuda/link.flags" conftest.o \
               -o conftest.so >&AS_MESSAGE_LOG_FD 2>&1],
        [have_cuda=yes])
      rm -f conftest.cu conftest.o conftest.so
      AC_MSG_RESULT([$have_cuda])])
   AS_IF([test "$have_cuda$with_cuda" = noyes],
     [AC_MSG_ERROR([no nvcc makes the CUDA module: NVCC=FILE or CUDA_HOME=DIR, see config.log])])])
AM_CONDITIONAL([HAVE_CUDA], [test "$have_cuda" = yes])
])
