return { layer_support = { {class = 'X', kind = 'weighted', channel_axis = false} } }
