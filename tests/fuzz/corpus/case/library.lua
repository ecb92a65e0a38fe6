return { case = function(model, spec) local t = library('resnet_v2').case(model, spec)
for k, v in pairs(library('efficientnet').case(model, spec)) do t[#t + 1] = v end
return t end }
