# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# gemms.sh - cases about the layer cublas: products of matrices by cuBLAS, beside CUDA's calls.

GEMMS=$BIN/gemms

# gemm_rows: what $T/out has of them, without times and durations.
gemm_rows() {
	sed -nE '/^[0-9.]+ +gemms +[0-9]+ +cublas/{s/^[0-9.]+ +gemms +[0-9]+ +//; s/[0-9.]+(ns|us|ms)$/DUR/; s/  +/ /; p}' "$T/out"
}

# Functions that cuBLAS calls inside count for the call of the program; what cannot be true is "?".
GEMMS_ALL='cublasSgemm_v2 4096 x 2048 x 1024, float32, NT, 17.18 GFLOP, returned=0 (success), DUR
cublasSgemm_v2_64 100 x 99 x 98, float32, NN, 1.94 MFLOP, returned=0 (success), DUR
cublasGemmEx 1024 x 512 x 256, float16 -> float32, TN, 268.4 MFLOP, returned=0 (success), DUR
cublasGemmStridedBatchedEx 128 x 64 x 32, batch 12, int8 -> int32, NN, 6.291 MFLOP, returned=0 (success), DUR
cublasSgemmGroupedBatched 64 x 32 x 16, 2 groups of 6, float32, 393.2 kFLOP, returned=0 (success), DUR
cublasSgemmGroupedBatched several shapes, 2 groups of 6, float32, 396.3 kFLOP, returned=0 (success), DUR
cublasSgemmGroupedBatched ?, 40 groups, float32, returned=0 (success), DUR
cublasLtMatmul 512 x 128 x 256, batch 4, bfloat16 -> float32, TN, 134.2 MFLOP, returned=0 (success), DUR
cublasLtMatmul 512 x 128 x 512, batch 4, bfloat16 -> float32, NN, 268.4 MFLOP, returned=0 (success), DUR
cublasLtMatmul ?, ?, returned=0 (success), DUR
cublasLtMatmul 512 x 128 x 256, batch 4, bfloat16 -> float32, 134.2 MFLOP, returned=0 (success), DUR
cublasLtMatmul ?, ?, returned=0 (success), DUR
cublasSgemm_v2 ?, float32, NN, returned=7 (CUBLAS_STATUS_INVALID_VALUE), DUR'

case_gemms_rows() {
	ct_rows --layers cublas -e cublas -- "$GEMMS" all
	ok_rc
	gemm_rows > "$T/got"
	diff - "$T/got" > "$T/diff" <<< "$GEMMS_ALL" || fail "rows differ: $(head -n 6 "$T/diff")"
	says '0 calls, 13 scopes, 0 lost'
}
