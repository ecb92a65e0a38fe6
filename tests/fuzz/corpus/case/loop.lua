return { case = function(model, spec) while true do pcall(function() while true do end end) end end }
