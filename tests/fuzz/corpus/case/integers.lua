return { case = function(model, spec) return {{name = 'a', quantization_index = {math.maxinteger // 1 << 1, 0x7fffffff, 2^53, -0.0, 1e308}}} end }
