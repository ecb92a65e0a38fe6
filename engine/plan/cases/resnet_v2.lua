-- SPDX-License-Identifier: Apache-2.0
return {
    info = [[ResNet of the second kind, with pre-activation: residual, batchnorm and
        maxpool together.]],

    case = function(model, spec)
        local entries = {}
        for _, name in ipairs { "residual", "batchnorm", "maxpool" } do
            for _, entry in ipairs(library(name).case(model, spec)) do
                entries[#entries + 1] = entry
            end
        end
        return entries
    end,
}
