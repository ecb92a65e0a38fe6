return { case = function(model, spec) local t = {5, 3, 1}
table.insert(t, 2) table.insert(t, 1, 9) table.remove(t, 2) table.move(t, 1, 3, 2)
table.sort(t) table.sort(t, function(a, b) return a > b end)
return {{name = table.concat(t, ',', 1, 3), quantization_index = {table.unpack(t, 1, 2)}}} end }
