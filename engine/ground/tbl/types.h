/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types of operators' outputs, from their schemas (ONNX operators up to opset
 * 24): TYPE_RULE(RULE, argument, "Op", ...); and MS_RULE(outputs, RULE, argument, "Op", ...)
 * for operators of the domain com.microsoft (ONNX Runtime 1.31), where `outputs` are ALL, REST
 * (those after the first) or the index of one. SimplifiedLayerNormalization has no domain
 * there.
 *
 *   SAME  the element type of input `argument`
 *   FIXED the element type `argument`
 *   ATTR  the type that an attribute states; `argument` if it is absent
 *   LIKE  the type that an attribute states; the type of input `argument` if it is absent
 *   VALUE the type of the tensor in attribute "value"; `argument` if it is absent
 *
 * The table has only types that the schema fixes. If the outputs after the first have
 * other types (MaxPool's indices, Dropout's mask), a REST_RULE states their type, or
 * QDQI_UNKNOWN if they differ from each other. An operator without a row leaves its
 * outputs unknown: a type is never guessed.
 */
TYPE_RULE(SAME, 0, "Abs", "Acos", "Acosh", "Add", "AffineGrid", "Asin", "Asinh", "Atan",
          "Atanh", "Attention", "AveragePool", "BatchNormalization", "BitShift",
          "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil", "Celu",
          "CenterCropPad", "Clip", "Col2Im", "Compress", "Concat", "Conv",
          "ConvTranspose", "Cos", "Cosh", "CumSum", "DFT", "DeformConv", "DepthToSpace",
          "Det", "Div", "Dropout", "Einsum", "Elu", "Erf", "Exp", "Expand", "Flatten",
          "Floor", "GRU", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm",
          "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GridSample",
          "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
          "InstanceNormalization", "LRN", "LSTM", "LayerNormalization", "LeakyRelu",
          "Log", "LogSoftmax", "LpNormalization", "LpPool", "MatMul", "Max", "MaxPool",
          "MaxRoiPool", "MaxUnpool", "Mean", "MeanVarianceNormalization", "Min", "Mish",
          "Mod", "Mul", "Neg", "NegativeLogLikelihoodLoss", "PRelu", "Pad", "Pow",
          "RNN", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
          "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
          "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Resize",
          "ReverseSequence", "RoiAlign", "RotaryEmbedding", "Round", "STFT", "Scatter",
          "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin",
          "Sinh", "Slice", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Softsign",
          "SpaceToDepth", "Split", "Sqrt", "Squeeze", "StringConcat",
          "StringNormalizer", "Sub", "Sum", "Swish", "Tan", "Tanh", "TensorScatter",
          "ThresholdedRelu", "Tile", "TopK", "Transpose", "Trilu", "Unique",
          "Unsqueeze", "Upsample")
TYPE_RULE(SAME, 1, "CastLike", "RMSNormalization", "SimplifiedLayerNormalization",
          "Where")
TYPE_RULE(SAME, 2, "OneHot")
TYPE_RULE(SAME, 7, "QLinearConv", "QLinearMatMul")
TYPE_RULE(FIXED, QDQI_BOOL, "And", "Equal", "Greater", "GreaterOrEqual", "IsInf",
          "IsNaN", "Less", "LessOrEqual", "Not", "OptionalHasElement", "Or",
          "RegexFullMatch", "Xor")
TYPE_RULE(FIXED, QDQI_INT64, "ArgMax", "ArgMin", "NonMaxSuppression", "NonZero",
          "SequenceLength", "Shape", "Size")
TYPE_RULE(FIXED, QDQI_INT32, "ConvInteger", "MatMulInteger")
TYPE_RULE(FIXED, QDQI_UINT8, "DynamicQuantizeLinear", "ImageDecoder")
TYPE_RULE(FIXED, QDQI_STRING, "StringSplit")
TYPE_RULE(FIXED, QDQI_FLOAT32, "TfIdfVectorizer")
TYPE_RULE(ATTR, QDQI_FLOAT32, "BlackmanWindow", "HammingWindow", "HannWindow",
          "MelWeightMatrix", "RandomNormal", "RandomUniform")
TYPE_RULE(ATTR, QDQI_UNKNOWN, "Cast")
TYPE_RULE(ATTR, QDQI_INT32, "Multinomial")
TYPE_RULE(LIKE, 0, "Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike")
TYPE_RULE(LIKE, 1, "DequantizeLinear")
TYPE_RULE(LIKE, 2, "QuantizeLinear")
TYPE_RULE(VALUE, QDQI_FLOAT32, "ConstantOfShape")
REST_RULE(SAME, 3, "BatchNormalization")
REST_RULE(FIXED, QDQI_UNKNOWN, "Attention", "DynamicQuantizeLinear")
REST_RULE(FIXED, QDQI_BOOL, "Dropout")
REST_RULE(FIXED, QDQI_INT64, "MaxPool", "StringSplit", "TopK", "Unique")
REST_RULE(ATTR, QDQI_FLOAT32, "LayerNormalization", "SimplifiedLayerNormalization")
MS_RULE(ALL, SAME, 0, "Attention", "BiasAdd", "BiasDropout", "BiasGelu", "BiasSoftmax",
        "BiasSplitGelu", "CausalConvWithState", "ComplexMul", "DecoderAttention",
        "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention",
        "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "ExpandDims", "FastGelu",
        "FusedConv", "FusedGemm", "FusedMatMul", "GatedRelativePositionBias", "Gelu",
        "GemmFastGelu", "GridSample", "GroupNorm", "GroupQueryAttention", "Inverse",
        "LinearAttention", "MatMulBnb4", "MatMulFpQ4", "MatMulNBits", "MoE",
        "MultiHeadAttention", "NhwcConv", "NhwcFusedConv", "NhwcMaxPool",
        "PackedAttention", "PackedMultiHeadAttention", "Pad", "PagedAttention", "QMoE",
        "QuickGelu", "RelativePositionBias", "RemovePadding", "RestorePadding",
        "RotaryEmbedding", "SkipGroupNorm", "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization", "SparseAttention", "TransposeMatMul",
        "Trilu")
MS_RULE(ALL, SAME, 0, "QLinearAdd", "QLinearAveragePool", "QLinearGlobalAveragePool",
        "QLinearLeakyRelu", "QLinearMul", "QLinearReduceMean", "QLinearSigmoid",
        "QLinearSoftmax")
MS_RULE(ALL, SAME, 1, "DequantizeLinear")
MS_RULE(ALL, SAME, 2, "EmbedLayerNormalization", "GatherBlockQuantized",
        "MatMulIntegerToFloat")
MS_RULE(REST, FIXED, QDQI_UNKNOWN, "EmbedLayerNormalization", "PackedAttention",
        "RemovePadding", "SparseAttention", "SkipGroupNorm", "MoE", "QMoE",
        "CausalConvWithState", "LinearAttention")
MS_RULE(REST, FIXED, QDQI_BOOL, "BiasDropout")
MS_RULE(REST, FIXED, QDQI_FLOAT32, "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization")
MS_RULE(3, SAME, 0, "SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
MS_RULE(REST, SAME, 3, "GroupQueryAttention") /* its cache may have a type of its own */
