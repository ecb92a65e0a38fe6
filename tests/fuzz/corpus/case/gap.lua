return { case = function(model, spec) return {{name = 'a'}, nil, {name = 'b'}, x = 1} end }
