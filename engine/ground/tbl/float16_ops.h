/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that can compute in float16 and bfloat16 (ONNX operators up to opset 25):
 *
 *   FLOAT16_OPS(float16, bfloat16, "Op", ...)  the first opset whose schemas accept
 *       float16, and bfloat16, wherever they accept float32; 0: no opset does
 *   FLOAT16_OPS_EXCEPT(float16, bfloat16, inputs, outputs, "Op", ...)  the same, except for
 *       inputs and outputs that stay float32 in any case, as bit sets
 *   FLOAT32_OPS("reason", "Op", ...)  operators whose schemas would allow it, but which stay
 *       float32 for the sake of their numbers
 *
 * Operators without a row stay float32.
 */
FLOAT16_OPS(1, 13, "Abs", "Add", "ArgMax", "ArgMin", "Ceil", "Clip", "Concat",
            "DepthToSpace", "Div", "Dropout", "Exp", "Flatten", "Floor", "Gather",
            "Gemm", "Greater", "Hardmax", "Identity", "LRN", "Less", "Log",
            "LogSoftmax", "MatMul", "Max", "Mean", "Min", "Mul", "Neg", "Pad",
            "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax",
            "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Reshape", "Sigmoid",
            "Slice", "Softmax", "SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub",
            "Sum", "Tanh", "Tile", "Transpose", "Unsqueeze")
FLOAT16_OPS(1, 14, "BatchNormalization")
FLOAT16_OPS(1, 16, "LeakyRelu", "PRelu")
FLOAT16_OPS(1, 22, "AveragePool", "Conv", "ConvTranspose", "Elu", "GRU",
            "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "HardSigmoid",
            "InstanceNormalization", "LSTM", "LpNormalization", "LpPool", "MaxPool",
            "RNN", "Selu", "Softplus", "Softsign")
FLOAT16_OPS(1, 24, "TopK")
FLOAT16_OPS(7, 22, "Acos", "Asin", "Atan", "Cos", "Sin", "Tan")
FLOAT16_OPS(8, 13, "Expand")
FLOAT16_OPS(9, 0, "Compress", "OneHot", "Shrink")
FLOAT16_OPS(9, 13, "Erf", "IsNaN", "MeanVarianceNormalization", "NonZero", "Sign")
FLOAT16_OPS(9, 16, "Where")
FLOAT16_OPS(9, 22, "Acosh", "Asinh", "Atanh", "Cosh", "MaxUnpool", "Sinh")
FLOAT16_OPS(10, 0, "ReverseSequence")
FLOAT16_OPS(10, 22, "ThresholdedRelu")
FLOAT16_OPS(11, 0, "Unique")
FLOAT16_OPS(11, 13, "Equal", "GatherElements", "GatherND", "ScatterElements",
            "ScatterND")
FLOAT16_OPS(11, 22, "Round")
FLOAT16_OPS(12, 0, "Einsum")
FLOAT16_OPS(12, 16, "GreaterOrEqual", "LessOrEqual")
FLOAT16_OPS(14, 14, "Trilu")
FLOAT16_OPS(14, 22, "HardSwish")
FLOAT16_OPS(18, 18, "CenterCropPad", "Col2Im", "GroupNormalization")
FLOAT16_OPS(18, 22, "Mish")
FLOAT16_OPS(20, 20, "Gelu", "IsInf")
FLOAT16_OPS(23, 23, "Attention", "RMSNormalization", "RotaryEmbedding")
FLOAT16_OPS(24, 24, "Swish", "TensorScatter")
FLOAT16_OPS_EXCEPT(17, 17, 0, 1 << 1 | 1 << 2,
                   "LayerNormalization")                 /* mean, deviation */
FLOAT16_OPS_EXCEPT(10, 13, 1 << 1 | 1 << 2, 0, "Resize") /* roi, scales */
FLOAT32_OPS("its results grow beyond the type's range", "Pow", "ReduceSumSquare",
            "ReduceProd", "ReduceLogSum", "Det", "DFT", "STFT")
FLOAT32_OPS("a running sum loses what is small beside it", "CumSum")
FLOAT32_OPS("a remainder of rounded numbers is another one", "Mod")
FLOAT32_OPS("coordinates need more digits", "AffineGrid", "GridSample", "RoiAlign",
            "MaxRoiPool", "DeformConv")
