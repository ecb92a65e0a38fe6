-- SPDX-License-Identifier: Apache-2.0
--
-- TensorRT computes an attention in int8 as one kernel where its queries, keys and values, the
-- output of its Softmax and the layer behind its second product have pairs. Pairs before the
-- Softmax break the kernel. Seen in plans of TensorRT for RTX 1.7.1: sequences up to 512, with
-- float8e4m3fn also longer ones, and heads of 16, 32 and 64.

local heads = { [16] = true, [32] = true, [64] = true }
local longest = 512

-- Returns the product of two computed operands in front of a layer, behind scales and masks.
local function find_scores(layer, deep)
    if layer == nil or deep == 0 then
        return nil
    end
    if layer:is("MatMul") and #layer.inputs == 2 then
        return layer
    end
    if not layer:is("Add", "Mul", "Div", "Where", "Cast", "Reshape", "Transpose") then
        return nil
    end
    for _, producer in ipairs(layer:producers()) do
        local found = find_scores(producer, deep - 1)
        if found then
            return found
        end
    end
    return nil
end

-- Returns whether a size that the file states is not among the wanted ones. A size that it does
-- not state may be any.
local function is_other(size, wanted)
    return math.type(size) == "integer" and not wanted(size)
end

local function fits(scores, values, spec)
    local shape, made = scores.output_shape, values.output_shape
    local sequence = shape and shape[#shape]
    if made and is_other(made[#made], function(n) return heads[n] end) then
        return false
    end
    return spec.activations ~= "int8" or
        not is_other(sequence, function(n) return n <= longest end)
end

local function quantize(entries, layer, spec)
    if not spec:names(layer) then
        entries[#entries + 1] = { name = layer.name, quantization_index = layer.inputs }
    end
end

return {
    info = [[Attention: quantizes both operands of the two products around a Softmax, so that
        TensorRT computes them as one int8 kernel, where the sizes that the file states allow
        it: a sequence of at most 512, heads of 16, 32 or 64.]],

    case = function(model, spec)
        local entries = {}
        for _, softmax in ipairs(model:layers("Softmax")) do
            local scores = find_scores(softmax:producer(0), 6)
            for _, values in ipairs(scores and softmax:consumers() or {}) do
                if values:is("MatMul") and #values.inputs == 2 and
                    fits(scores, values, spec) then
                    quantize(entries, scores, spec)
                    quantize(entries, values, spec)
                end
            end
        end
        return entries
    end,
}
