return { case = function(model, spec) local ok, e = pcall(error, {1})
local a, b = pcall(function() local x = nil return x.y end)
error(b .. tostring(ok), 0) end }
