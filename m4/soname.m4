# SPDX-License-Identifier: Apache-2.0
# QDQ_SONAME(MACRO, NAME, LIBS): defines MACRO as the file name by which a program that is
# linked with LIBS finds the library NAME at run time, for example "libcurl.so.4".
AC_DEFUN([QDQ_SONAME], [
AC_MSG_CHECKING([for the name of $2 at run time])
qdq_saved_LIBS=$LIBS
qdq_saved_LDFLAGS=$LDFLAGS
LIBS="$3 $LIBS"
LDFLAGS="$LDFLAGS -Wl,--no-as-needed"
qdq_soname=
AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
  [qdq_soname=`${OBJDUMP:-objdump} -p conftest$EXEEXT | sed -n 's/^ *NEEDED *\($2\.so.*\)/\1/p'`])
LIBS=$qdq_saved_LIBS
LDFLAGS=$qdq_saved_LDFLAGS
AC_MSG_RESULT([$qdq_soname])
AS_IF([test -z "$qdq_soname"], [AC_MSG_ERROR([$2 has no name at run time])])
AC_DEFINE_UNQUOTED([$1], ["$qdq_soname"], [file name of $2 at run time])])
