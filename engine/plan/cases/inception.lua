-- SPDX-License-Identifier: Apache-2.0
return {
    info = [[Inception: the same as maxpool.]],
    case = library("maxpool").case,
}
