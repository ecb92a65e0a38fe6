-- SPDX-License-Identifier: Apache-2.0
return {
    info = [[Every BatchNormalization that no convolution stands before, as in
        pre-activation networks: quantizes its input. One behind a convolution is fused
        with it and left alone.]],

    case = function(model, spec)
        local entries = {}
        for _, layer in ipairs(model:layers("BatchNormalization")) do
            local producer = layer:producer(0)
            local behind_conv = producer and producer:is("Conv", "ConvTranspose")
            if not behind_conv and not spec:names(layer) then
                entries[#entries + 1] = { name = layer.name }
            end
        end
        return entries
    end,
}
