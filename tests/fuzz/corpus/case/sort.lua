return { case = function(model, spec) table.sort({1, 2, 3, {}, "x"}) end }
