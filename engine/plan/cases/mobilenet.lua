-- SPDX-License-Identifier: Apache-2.0
return {
    info = [[MobileNet: the same as residual.]],
    case = library("residual").case,
}
