-- SPDX-License-Identifier: Apache-2.0
return {
    info = [[Every MaxPool: quantizes its input, so that a pool between quantized layers
        works on int8.]],

    case = function(model, spec)
        local entries = {}
        for _, layer in ipairs(model:layers("MaxPool")) do
            if not spec:names(layer) then
                entries[#entries + 1] = { name = layer.name }
            end
        end
        return entries
    end,
}
