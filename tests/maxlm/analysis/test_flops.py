"""FLOPs of single instructions, as the TPU and GPU compilers write them, against a hand count."""

import pytest

from maxlm.analysis import flops, hlo


def program(*lines: str) -> hlo.Program:
    body = "\n".join(f"  {line}" for line in lines)
    return hlo.parse(f"HloModule m\n\nENTRY %main () -> f32[] {{\n{body}\n}}\n")


def counted(*lines: str) -> tuple[dict[str, float], list[str]]:
    return flops.by_precision(program(*lines).runs)


def test_dot():
    assert counted(
        "%a = bf16[3,5,8]{2,1,0} parameter(0)", "%b = bf16[3,8,7]{2,1,0} parameter(1)",
        "ROOT %d = f32[3,5,7]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_batch_dims={0}, rhs_contracting_dims={1}") == ({"bf16": 2 * 3 * 5 * 8 * 7}, [])


@pytest.mark.parametrize("left, right, out, attributes, expected", [
    # [512,1024] x [1024,256]
    ("512,1024", "1024,256", "512,256", "dim_labels=bf_io->bf", 2 * 512 * 1024 * 256),
    # A batch of 8 matmuls [128,64] x [64,512] as a spatial dimension with holes.
    ("8,128,64", "8,512,64", "8,128,512",
     "window={size=8 stride=7 lhs_dilate=8}, dim_labels=0bf_0oi->0bf", 2 * 8 * 128 * 64 * 512),
    ("8,64,128", "8,64,512", "8,512,128",
     "window={size=8 stride=8 pad=7_7 lhs_dilate=7 rhs_reversal=1}, dim_labels=0fb_0io->0fb",
     2 * 8 * 128 * 64 * 512),
    # Contraction over a spatial dimension and features: [512, 2*32] x [2*32, 8*64].
    ("512,2,32,1", "8,64,2,32", "512,8,64,1",
     "window={size=8x2 pad=7_7x0_0 rhs_reversal=1x0}, dim_labels=b1f0_0o1i->b0f1",
     2 * 512 * 64 * 512),
    # A real convolution: 3 taps over 10 places with padding 1: 28 of 30 meet the input.
    ("4,10,6", "3,6,5", "4,10,5", "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
     2 * 4 * 28 * 6 * 5),
])
def test_convolution(left, right, out, attributes, expected):
    assert counted(
        f"%a = bf16[{left}]{{0}} parameter(0)", f"%b = bf16[{right}]{{0}} parameter(1)",
        f"ROOT %c = bf16[{out}]{{0}} convolution(%a, %b), {attributes}") == (
            {"bf16": expected}, [])


def test_precision_of_the_operands():
    line = ("ROOT %d = f32[2,2]{1,0} dot(%a, %b), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}")
    f32 = ["%a = f32[2,2]{1,0} parameter(0)", "%b = f32[2,2]{1,0} parameter(1)"]
    assert list(counted(*f32, line)[0]) == ["f32"]
    assert list(counted(*f32, line + ", operand_precision={highest,highest}")[0]) == [
        "f32 highest"]
    mixed = [f32[0], "%b = f8e4m3fn[2,2]{1,0} parameter(1)"]
    assert list(counted(*mixed, line)[0]) == ["f32xf8e4m3fn"]


def test_kernels():
    query = "%q = bf16[2,128,4,64]{3,2,1,0} parameter(0)"
    key = "%k = bf16[2,256,4,64]{3,2,1,0} parameter(1)"
    one = 2 * (2 * 128 * 4 * 64) * 256  # one matmul of attention

    def kernel(target: str, config: str = "{}"):
        return counted(query, key, f'ROOT %c = bf16[2,128,4,64]{{3,2,1,0}} custom-call(%q, %k), '
                       f'custom_call_target="{target}", backend_config={config}')

    assert kernel("tpu_custom_call", '{"custom_call_config":{"cost_estimate":{"flops":"12345",'
                  '"transcendentals":"1"}}}') == ({"bf16": 12345}, [])
    assert kernel("tpu_custom_call") == ({}, ["tpu_custom_call"])
    assert kernel("AllocateBuffer") == ({}, [])
    causal = '{"cudnn_fmha_backend_config":{"mask_type":"CAUSAL"}}'
    assert kernel("__cudnn$fmhaSoftmax", causal) == ({"bf16": 2 * one / 2}, [])
    assert kernel("__cudnn$fmhaSoftmaxBackward") == ({"bf16": 5 * one}, [])
    # [2,128,4,64] contracted over its last dimension, result of 65,536 elements
    assert kernel("__cublas$lt$matmul",
                  '{"gemm_backend_config":{"dot_dimension_numbers":'
                  '{"lhs_contracting_dimensions":["3"]}}}') == ({"bf16": 2 * 65536 * 64}, [])
