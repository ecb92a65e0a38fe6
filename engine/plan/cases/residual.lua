-- SPDX-License-Identifier: Apache-2.0
--
-- An Add that joins a residual connection is fused with the convolution that computes
-- one of its inputs, if that input has no pair: conv -> Add is then one kernel, and the
-- other input is read as int8.
--
-- The end of a convolution is the convolution itself or a BatchNormalization behind it.
-- NVIDIA's toolkit also matches a Keras `Activation` behind the two, but not a `ReLU`
-- layer; in ONNX both are a Relu. This script does not match a Relu: all networks in the
-- toolkit's own tests use the ReLU layer; the `Activation` that the toolkit means is the
-- linear one of EfficientNet, which is no node in ONNX; and an Add is not fused across a
-- real activation. Dropout, Identity and similar layers are ignored in between.

local function ends_conv(layer)
    if layer:is("BatchNormalization") then
        layer = layer:producer(0)
    end
    return layer ~= nil and layer:is("Conv", "ConvTranspose")
end

-- Removes the first of the inputs that is the end of a convolution and has no other
-- consumer, if there is one. Returns the inputs.
local function without_conv(layer, inputs)
    for place = 1, #inputs do
        local producer = layer:producer(inputs[place])
        if producer and producer.n_consumers == 1 and ends_conv(producer) then
            table.remove(inputs, place)
            break
        end
    end
    return inputs
end

return {
    info = [[Add and Sum of residual connections: quantizes every input but the first
        one that is the end of a convolution used nowhere else, so that the Add is fused
        with that convolution; every input, where there is none.]],

    case = function(model, spec)
        local entries = {}
        for _, class in ipairs { "Add", "Sum" } do
            for _, layer in ipairs(model:layers(class)) do
                local inputs = layer.inputs
                if #inputs >= 2 and not spec:names(layer) then
                    entries[#entries + 1] = {
                        name = layer.name,
                        quantization_index = without_conv(layer, inputs),
                    }
                end
            end
        end
        return entries
    end,
}
