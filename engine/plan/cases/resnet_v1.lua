-- SPDX-License-Identifier: Apache-2.0
return {
    info = [[ResNet of the first kind: the same as residual.]],
    case = library("residual").case,
}
