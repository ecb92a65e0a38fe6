return { case = function(model, spec) local s = string.format('%-5s|%5.2f|%d|%x|%c|%%', 'a', 1.5, 7, 255, 65)
return {{name = (s:rep(2, '-'):upper():lower():reverse():sub(2, -2) .. s:byte(1) .. string.char(72) .. #s .. tostring(s:find('|', 3))), quantization_index = {1}}} end }
