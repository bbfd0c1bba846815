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

# The layer changes no number of a call, and a replay shows the same.
case_gemms_recorded() {
	ct record -o "$T/r.ctr" --layers cublas -- "$GEMMS" all
	ok_rc
	ct replay "$T/r.ctr" -e gemm
	ok_rc
	gemm_rows > "$T/got"
	diff - "$T/got" > "$T/diff" <<< "$GEMMS_ALL" || fail "rows differ: $(head -n 6 "$T/diff")"
}

case_gemms_json() {
	ct_json --layers cublas --gpu -- "$GEMMS" all
	ok_rc
	no_loss
	python3 - "$T/out" > "$T/got" << 'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
gemms = {r['range_id']: r for r in rows if r['type'] == 'gemm'}
for r in gemms.values():
    print(*(r.get(k) for k in ('name', 'm', 'n', 'k', 'batch', 'a_type', 'd_type', 'compute', 'trans_a', 'trans_b', 'flop', 'result')))
kernels = [r for r in rows if r['type'] == 'kernel']
print(len(kernels), 'kernels in', len({r['scope'] for r in kernels}), 'products', all(r['scope'] in gemms for r in kernels))
PY
	diff - "$T/got" > "$T/diff" <<- 'EOT' || fail "differs: $(head -n 6 "$T/diff")"
	cublasSgemm_v2 4096 2048 1024 1 float32 float32 None N T 17179869184 CUBLAS_STATUS_SUCCESS
	cublasSgemm_v2_64 100 99 98 1 float32 float32 None N N 1940400 CUBLAS_STATUS_SUCCESS
	cublasGemmEx 1024 512 256 1 float16 float32 32F T N 268435456 CUBLAS_STATUS_SUCCESS
	cublasGemmStridedBatchedEx 128 64 32 12 int8 int32 32I N N 6291456 CUBLAS_STATUS_SUCCESS
	cublasSgemmGroupedBatched 64 32 16 6 float32 float32 None None None 393216 CUBLAS_STATUS_SUCCESS
	cublasSgemmGroupedBatched None None None 6 float32 float32 None None None 396288 CUBLAS_STATUS_SUCCESS
	cublasSgemmGroupedBatched None None None None float32 float32 None None None None CUBLAS_STATUS_SUCCESS
	cublasLtMatmul 512 128 256 4 bfloat16 float32 32F_FAST_TF32 T N 134217728 CUBLAS_STATUS_SUCCESS
	cublasLtMatmul 512 128 512 4 bfloat16 float32 32F_FAST_TF32 N N 268435456 CUBLAS_STATUS_SUCCESS
	cublasLtMatmul None None None None None None None None None None CUBLAS_STATUS_SUCCESS
	cublasLtMatmul 512 128 256 4 bfloat16 float32 None None None 134217728 CUBLAS_STATUS_SUCCESS
	cublasLtMatmul None None None None None None None None None None CUBLAS_STATUS_SUCCESS
	cublasSgemm_v2 None None None None float32 float32 None N N None CUBLAS_STATUS_INVALID_VALUE
	12 kernels in 12 products True
	EOT
}

# The calls of the program are the same with the layer and without.
case_gemms_leave_calls() { # long
	ct_json -- "$GEMMS" many 5
	grep '"type":"call"' "$T/out" | sed -E 's/"(start_ns|duration_ns|pid|tid)":[0-9]+//g; s/0x[0-9a-f]+/0x/g' > "$T/without"
	ct_json --layers cublas -- "$GEMMS" many 5
	grep '"type":"call"' "$T/out" | sed -E 's/,"scope(_name)?":("[^"]*"|[0-9]+)//g; s/"(start_ns|duration_ns|pid|tid)":[0-9]+//g; s/0x[0-9a-f]+/0x/g' > "$T/with"
	expect "launches" "$(grep -c cudaLaunchKernel "$T/with")" 5
	diff "$T/without" "$T/with" > "$T/diff" || fail "calls differ: $(head -n 4 "$T/diff")"
}

# FLOP and rates: each product counts once, though cublasGemmEx calls cublasLtMatmul; a recording has the same.
case_gemms_stat() {
	ct record --gpu --layers cublas -o "$T/r.ctr" -- "$GEMMS" many 7
	ok_rc
	ct stat --by gemm --json -o "$T/sums" "$T/r.ctr"
	ok_rc
	python3 - "$T/sums" > "$T/got" << 'PY'
import json, sys
t = json.load(open(sys.argv[1], encoding='utf-8'))
for r in t['rows']:
    if 'name' not in r:
        continue
    print(r['name'], r['count'], r['kernels'], r['m'], r['n'], r['k'], r['a_type'], r['flop'], r['called_flop'],
          abs(r['tflops'] - r['flop'] / r['flop_ns'] / 1e3) < 0.001, r['flop_ns'] == r['gpu_ns'], 'peak_share' in r)
PY
	diff - "$T/got" > "$T/diff" <<- 'EOT' || fail "differs: $(head -n 6 "$T/diff")"
	cublasGemmEx 256 x 128 x 64, float16, NN 7 7 256 128 64 float16 29360128 29360128 True True True
	EOT
	ct stat --by gemm -o "$T/table" "$T/r.ctr"
	expect "head" "$(sed -n 2p "$T/table" | tr -s ' ')" ' Time% GPU time Inclusive Kernels Calls Host time Count GFLOP TFLOP/s Peak% Name'
	ct stat --by class --json -o "$T/classes" "$T/r.ctr"
	expect "classes" "$(grep -o '"name":"gemm","count":7' "$T/classes")" '"name":"gemm","count":7'
}

# cuBLAS has a runtime of its own, whose functions have no probes. Its launch takes long before it calls the driver, as when it loads a
# module: the kernel is of the driver's call, and of the product around that.
case_gemms_inner() {
	LD_LIBRARY_PATH=$STANDIN/inner:$STANDIN STANDIN_DELAY_US=cudaLaunchKernel:5000 \
		ct record --gpu --layers cublas -o "$T/r.ctr" -- "$GEMMS" many 20
	ok_rc
	says ' calls, 20 on devices, 20 scopes, 0 lost'
	ct stat --by gemm --json -o "$T/sums" "$T/r.ctr"
	expect "sums" "$(grep -oE '"kernels":[0-9]+|"flop":[0-9]+|"unknown":true' "$T/sums" | tr '\n' ' ')" \
		'"kernels":20 "kernels":20 "flop":83886080 "kernels":0 '
	ct replay --format json -o "$T/json" "$T/r.ctr"
	grep '"name":"cuLaunchKernel","args"' "$T/json" | grep -o '"correlation":[0-9]*' | sort > "$T/calls"
	grep '"type":"kernel"' "$T/json" | grep -o '"correlation":[0-9]*' | sort > "$T/kernels"
	expect "calls" "$(wc -l < "$T/calls")" 20
	cmp -s "$T/calls" "$T/kernels" || fail "kernels have other calls: $(diff "$T/calls" "$T/kernels" | head -n 4)"
}

# Work whose call has no record is in an unknown scope, and is counted.
case_gemms_unknown() {
	ct record --gpu --layers cublas -e none -o "$T/r.ctr" -- "$GEMMS" many 5
	ok_rc
	says '0 calls, 5 on devices, 5 in an unknown scope, 0 lost'
	ct replay --format json -o "$T/json" "$T/r.ctr"
	says '0 calls, 5 on devices, 5 in an unknown scope, 0 lost'
	expect "end" "$(tail -n 1 "$T/json" | grep -o '"matched.*"seen"')" '"matched":5,"unmatched":0,"inferred":0,"scope_unknown":5,"seen"'
	ct stat --by gemm --json -o "$T/sums" "$T/r.ctr"
	expect "row" "$(grep -oE '"(none|unknown)":true.*"kernels":[0-9]+' "$T/sums")" \
		'"unknown":true,"count":0,"duration_ns":0,"calls":0,"calls_ns":0,"kernels":5'
}

# The rows of calls and of the kernels that compute a product have columns for it; the step has its FLOP.
case_gemms_columns() {
	ct record --gpu --layers cublas,nvtx -o "$T/r.ctr" -- "$GEMMS" many 3
	ok_rc
	ct export --to csv -o "$T/csv" "$T/r.ctr"
	ct export --to json -o "$T/json" "$T/r.ctr"
	python3 - "$T/csv" "$T/json" > "$T/got" << 'PY'
import csv, json, sys
for r in csv.DictReader(open(sys.argv[1], encoding='utf-8')):
    if r['type'] in ('gemm', 'kernel'):
        print(r['type'], *(r[c] for c in ('m', 'n', 'k', 'batch', 'a_type', 'b_type', 'd_type', 'flop')),
              r['type'] == 'gemm' and not r['tflops'] or abs(float(r['tflops']) - int(r['flop']) / int(r['duration_ns']) / 1e3) < 1e-6, 0 < float(r['peak_share'] or 0.5) < 1)
for r in map(json.loads, open(sys.argv[2], encoding='utf-8')):
    if r['type'] == 'kernel':
        print(r['flop'], abs(r['tflops'] - r['flop'] / r['duration_ns'] / 1e3) < 0.001, 'peak_share' in r)
PY
	{
		for _ in 1 2 3; do printf '%s 256 128 64 1 float16 float16 float16 4194304 True True\n' gemm kernel; done
		for _ in 1 2 3; do echo 4194304 True True; done
	} | sort > "$T/want"
	sort "$T/got" | diff "$T/want" - > "$T/diff" || fail "differs: $(head -n 6 "$T/diff")"
	ct export --to otlp-json -o "$T/otlp" "$T/r.ctr"
	python3 - "$T/otlp" > "$T/got" << 'PY'
import json, sys
for line in open(sys.argv[1], encoding='utf-8'):
    for rs in json.loads(line)['resourceSpans']:
        for span in (s for ss in rs['scopeSpans'] for s in ss['spans']):
            has = {a['key']: next(iter(a['value'].values())) for a in span['attributes']}
            if 'gemm.m' in has:
                ns = int(span['endTimeUnixNano']) - int(span['startTimeUnixNano'])
                print(has['cupti_type'], *(has[f'gemm.{k}'] for k in ('m', 'n', 'k', 'batch', 'a_type', 'd_type', 'flop')),
                      has['cupti_type'] == 'scope' or abs(has['gemm.tflops'] - int(has['gemm.flop']) / ns / 1e3) < 1e-6, 0 < has.get('gemm.peak_share', 0.5) < 1)
PY
	expect "OTLP" "$(sort "$T/got" | uniq -c | tr -s ' ')" ' 3 activity 256 128 64 1 float16 float16 4194304 True True
 3 scope 256 128 64 1 float16 float16 4194304 True True'
}

# The calls that launch are not shown, but they say which product a kernel computes.
case_gemms_alone() {
	ct_json --gpu --layers cublas -e gemm -- "$GEMMS" many 3
	ok_rc
	no_loss
	expect "calls" "$(grep -c '"type":"call"' "$T/out")" 0
	expect "kernels" "$(grep '"type":"kernel"' "$T/out" | grep -c '"flop":4194304,"tflops":.*"scope_name":"cublasGemmEx')" 3
	says '0 calls, 3 on devices, 3 scopes, 0 lost'
}

# A program that runs already.
case_gemms_attached() {
	local pid fd
	mkfifo "$T/in"
	"$GEMMS" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	attach --layers cublas -e gemm -p "$pid"
	printf 'xx' >&"$fd"
	printf 'q' >&"$fd"
	wait "$pid"
	wait "$CT" || fail "status $?"
	expect "products" "$(grep -c '"flop":4194304' "$T/out")" 2
}

# Sizes that tensor cores do not like are found, and others are not.
case_gemms_advise() {
	ct advise --gpu --layers cublas --format json -o "$T/odd" -- "$GEMMS" odd 25
	grep -q '"gemm-shape"' "$T/odd" || fail "not found: $(head -c 300 "$T/odd")"
	grep -q 'm, n, k = 255, 128, 63' "$T/odd" || fail "no shape: $(head -c 900 "$T/odd")"
	ct advise --gpu --layers cublas --format json -o "$T/even" -- "$GEMMS" many 25
	! grep -q 'm, n, k =' "$T/even" || fail "found: $(head -c 900 "$T/even")"
}

# The words of cuBLASLt are where they are read, by the functions of the library that PyTorch's package brings.
case_gemms_layouts() {
	local rc
	"${TORCH_PYTHON:-python3}" tests/cases/check_layouts.py > "$T/got" 2>&1
	rc=$?
	[ $rc != 2 ] || skip "no cuBLASLt here (TORCH_PYTHON=... names a Python whose packages have it)"
	expect "status" "$rc $(head -n 1 "$T/got" | cut -c1-120)" "0 $(head -n 1 "$T/got" | cut -c1-120)"
}

CONVOLUTIONS=$BIN/convolutions

# What cuDNN computes is known by what the program said of each descriptor when it made the plan; what is not known, or does not fit, is "?".
CONVOLUTIONS_ALL='cudnnBackendExecute forward, x[4, 8, 9, 9], w[16, 8, 3, 3], y[4, 16, 7, 7], 196 x 16 x 72, float16, 451.6 kFLOP, returned=0 (success), DUR
cudnnBackendExecute forward, x[4, 8, 9, 9], w[16, 4, 3, 3], y[4, 16, 7, 7], 196 x 8 x 36, batch 2, bfloat16, 225.8 kFLOP, returned=0 (success), DUR
cudnnBackendExecute data gradient, x[4, 8, 9, 9], w[16, 8, 3, 3], y[4, 16, 7, 7], 196 x 72 x 16, float32, 451.6 kFLOP, returned=0 (success), DUR
cudnnBackendExecute filter gradient, x[4, 8, 9, 9], w[16, 8, 3, 3], y[4, 16, 7, 7], 16 x 72 x 196, float32, 451.6 kFLOP, returned=0 (success), DUR
cudnnBackendExecute forward, x[2, 4, 5, 6, 7], w[8, 4, 2, 2, 2], y[2, 8, 4, 5, 6], 240 x 8 x 32, float32, 122.9 kFLOP, returned=0 (success), DUR
cudnnBackendExecute 2 products, several shapes, float16, 25.17 MFLOP, returned=0 (success), DUR
cudnnBackendExecute matmul, 64 x 128 x 32, batch 24, float16, 12.58 MFLOP, returned=0 (success), DUR
cudnnBackendExecute no product, returned=0 (success), DUR
cudnnBackendExecute ?, ?, returned=0 (success), DUR
cudnnBackendExecute ?, ?, returned=0 (success), DUR
cudnnBackendExecute ?, ?, returned=2000 (CUDNN_STATUS_BAD_PARAM), DUR
cudnnConvolutionForward forward, x[4, 8, 9, 9], w[16, 8, 3, 3], y[4, 16, 7, 7], 196 x 16 x 72, float16, 451.6 kFLOP, returned=0 (success), DUR
cudnnConvolutionBackwardData data gradient, x[4, 8, 9, 9], w[16, 8, 3, 3], y[4, 16, 7, 7], 196 x 72 x 16, float16, 451.6 kFLOP, returned=0 (success), DUR
cudnnConvolutionBackwardFilter filter gradient, x[4, 8, 9, 9], w[16, 8, 3, 3], y[4, 16, 7, 7], 16 x 72 x 196, float16, 451.6 kFLOP, returned=0 (success), DUR
cudnnConvolutionForward ?, ?, returned=0 (success), DUR'

convolution_rows() {
	sed -nE '/^[0-9.]+ +convolutions +[0-9]+ +cudnn/{s/^[0-9.]+ +convolutions +[0-9]+ +//; s/[0-9.]+(ns|us|ms)$/DUR/; s/  +/ /; p}' "$1"
}

case_gemms_convolutions() { # undisturbed
	ct_rows --layers cudnn -e gemm -- "$CONVOLUTIONS" all
	ok_rc
	convolution_rows "$T/out" > "$T/got"
	diff - "$T/got" > "$T/diff" <<< "$CONVOLUTIONS_ALL" || fail "rows differ: $(head -n 6 "$T/diff")"
	says '0 calls, 15 scopes, 0 lost'
	ct_rows --source=hooks --layers cudnn -e gemm -- "$CONVOLUTIONS" all
	convolution_rows "$T/out" > "$T/got"
	diff - "$T/got" > "$T/diff" <<< "$CONVOLUTIONS_ALL" || fail "by hooks rows differ: $(head -n 6 "$T/diff")"
}

# The kernels of a convolution have its FLOP, and are of its class; JSON names the operation.
case_gemms_convolutions_device() { # long
	ct record --gpu --layers cudnn -o "$T/r.ctr" -- "$CONVOLUTIONS" all
	ok_rc
	ct export --to json -o "$T/json" "$T/r.ctr"
	python3 - "$T/json" > "$T/got" << 'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
gemms = {r['range_id']: r for r in rows if r['type'] == 'gemm'}
for r in rows:
    if r['type'] == 'kernel':
        of = gemms[r['scope']]
        print(of['name'], of.get('operation', '-').split(',')[0], r.get('flop'), r.get('flop') == of.get('flop'), 'tflops' in r)
PY
	sort "$T/got" | uniq -c | tr -s ' ' > "$T/sums"
	diff - "$T/sums" > "$T/diff" <<- 'EOT' || fail "differs: $(head -n 9 "$T/diff")"
	 2 cudnnBackendExecute - None True False
	 1 cudnnBackendExecute 2 products 25165824 True True
	 1 cudnnBackendExecute data gradient 451584 True True
	 1 cudnnBackendExecute filter gradient 451584 True True
	 1 cudnnBackendExecute forward 122880 True True
	 1 cudnnBackendExecute forward 225792 True True
	 1 cudnnBackendExecute forward 451584 True True
	 1 cudnnBackendExecute matmul 12582912 True True
	 1 cudnnBackendExecute no product None True False
	 1 cudnnConvolutionBackwardData data gradient 451584 True True
	 1 cudnnConvolutionBackwardFilter filter gradient 451584 True True
	 1 cudnnConvolutionForward - None True False
	 1 cudnnConvolutionForward forward 451584 True True
	EOT
	ct stat --by class --json -o "$T/classes" "$T/r.ctr"
	expect "classes" "$(grep -o '"name":"convolution","count":8' "$T/classes")" '"name":"convolution","count":8'
	ct stat --by gemm -o "$T/by" -- "$CONVOLUTIONS" all
	grep -q 'cudnnBackendExecute 64 x 128 x 32, batch 24, float16' "$T/by" || fail "not in the table: $(head -n 4 "$T/by")"
}

# A plan that was made before the trace has no shape, one that is made during it has.
case_gemms_convolutions_attached() {
	local pid fd
	mkfifo "$T/in"
	"$CONVOLUTIONS" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	attach --layers cudnn -e gemm -p "$pid"
	printf 'xnxq' >&"$fd"
	wait "$pid"
	wait "$CT" || fail "status $?"
	expect "products" "$(grep '"type":"gemm"' "$T/out" | grep -o '"flop":[0-9]*\|"ret":0' | tr '\n' ' ')" '"ret":0 "flop":451584 "ret":0 "flop":451584 "ret":0 '
}

# NVIDIA's own library, where there is one: without a GPU its calls fail, but what they were to compute has been said.
case_gemms_cudnn() {
	local library
	library=$("${TORCH_PYTHON:-python3}" -c 'import nvidia.cudnn as c; print(list(c.__path__)[0] + "/lib/libcudnn.so.9")' 2> /dev/null)
	[ -r "$library" ] || skip "no cuDNN here (TORCH_PYTHON=... names a Python whose packages have it)"
	ct_json --layers cudnn -e gemm -- python3 tests/cases/prog/cudnn_plan.py "$library"
	expect "products" "$(grep -o '"operation":.*"flop":[0-9]*' "$T/out")" '"operation":"forward, x[32, 64, 56, 56], w[128, 64, 3, 3], y[32, 128, 54, 54]","m":93312,"n":128,"k":576,"batch":1,"a_type":"float16","b_type":"float16","d_type":"float16","flop":13759414272
"operation":"forward, x[32, 64, 56, 56], w[128, 64, 3, 3], y[32, 128, 54, 54]","m":93312,"n":128,"k":576,"batch":1,"a_type":"float32","b_type":"float32","d_type":"float32","flop":13759414272'
}
