-- SPDX-License-Identifier: Apache-2.0
return {
    info = [[EfficientNet: residual, and every Multiply (of squeeze and excitation, not
        of a swish): quantizes all of its inputs.]],

    case = function(model, spec)
        local entries = library("residual").case(model, spec)
        for _, layer in ipairs(model:layers("Multiply")) do
            local inputs = layer.inputs
            if #inputs > 0 and not spec:names(layer) then
                entries[#entries + 1] = {
                    name = layer.name,
                    quantization_index = inputs,
                }
            end
        end
        return entries
    end,
}
