# SPDX-License-Identifier: BSD-2-Clause
"""
gen_api_hints.py - what CUDA's headers do not say, for gen_api.py: classes by name, which pointer is an output or a list
and how long it is, which integer holds flags, which argument is the size of the work, how unions are selected.

These are the habits of CUDA's naming. A proposal made of them is read by a person before it becomes a row.
"""

import re

# First match wins. The name is the symbol without cuda/cu and without _vN.
CLASSES = [
    (re.compile(p), c)
    for p, c in [
        (r'^__cuda', 'INTERNAL'),
        (r'^Profiler|^Coredump|^Logs', 'PROFILER'),
        (
            r'^(GetLastError|PeekAtLastError|GetError|GetExportTable|GetProcAddress|GetDriverEntryPoint|DriverGetVersion|'
            r'RuntimeGetVersion|Occupancy|StreamIsCapturing|StreamGet|PointerGet|FuncGet|KernelGet(Name|Attribute|ParamInfo|Library)|'
            r'FuncIsLoaded|GetDevice$|GetDeviceCount|GetDeviceFlags|DeviceGetAttribute|DeviceGetP2P|DeviceGetHostAtomic|'
            r'DeviceGet(Limit|CacheConfig|SharedMemConfig|StreamPriorityRange)|DeviceGet$|DeviceGetCount|DevicePrimaryCtxGetState|'
            r'CtxGet|GreenCtxGet|HostGetFlags|MemHostGetFlags|MemGetAddressRange|MemGetAccess|MemGetAllocation|'
            r'MemRangeGet|MemPoolGet|MulticastGet|ThreadGet|LibraryGetKernelCount|ModuleGetFunctionCount|ModuleGetLoadingMode|'
            r'GraphNodeGetType|GraphNodeGetEnabled|GraphExecGetFlags|CheckpointProcessGet)',
            'QUERY',
        ),
        (
            r'^(Tex|Surf|TensorMap|BindTexture|BindSurface|UnbindTexture|CreateTexture|CreateSurface|DestroyTexture|'
            r'DestroySurface|GetTexture|GetSurface|GetChannelDesc|CreateChannelDesc|ModuleGetTexRef|ModuleGetSurfRef|'
            r'DeviceGetTexture)',
            'TEXTURE',
        ),
        (
            r'^(Ipc|Import|External|DestroyExternal|SignalExternal|WaitExternal|Graphics|GL|EGL|VDPAU|DeviceCanAccessPeer|'
            r'(Device|Ctx)(En|Dis)ablePeerAccess|EventCreateFromEGLSync|DeviceGetNvSciSync)',
            'PEER',
        ),
        (
            r'^(Graph|UserObject|StreamBeginCapture|StreamEndCapture|StreamUpdateCapture|ThreadExchangeStreamCapture|'
            r'DeviceGraphMem|Device[GS]etGraphMem)',
            'GRAPH',
        ),
        (r'^Memset', 'SET'),
        (r'^(Memcpy|MemPrefetch|MemDiscardAndPrefetch|MemBatchDecompress)', 'COPY'),
        (r'^(Launch|Param|FuncSetBlockShape|FuncSetSharedSize)', 'LAUNCH'),
        (r'Synchronize$', 'SYNC'),
        (r'^(Stream|GreenCtxStream)', 'STREAM'),
        (r'^(Event|CtxRecordEvent|CtxWaitEvent|GreenCtxRecordEvent|GreenCtxWaitEvent)', 'EVENT'),
        (
            r'^(Malloc|Free|Host|Mem|Array|Mipmapped|GetMipmapped|Multicast|DeviceGetDefaultMemPool|Device[GS]etMemPool|'
            r'PointerSet)',
            'MEMORY',
        ),
        (r'^(Ctx|DevicePrimaryCtx|GreenCtx|DevSm|DevResource|DeviceGetDevResource|Init$|Checkpoint)', 'CONTEXT'),
        (r'^(Module|Library|Link|Func|Kernel|GetKernel|GetFuncBySymbol|GetSymbol)', 'MODULE'),
        (r'^(Device|SetDevice|GetDevice|ChooseDevice|SetValidDevices|InitDevice|Thread|SetDouble|Flush)', 'DEVICE'),
        (r'.', 'CONTEXT'),
    ]
]

# Calls the program back before it returns, on the same thread.
CALLBACK = re.compile(r'OccupancyMaxPotentialBlockSize')
NOT_READY = re.compile(r'^(cuda|cu)(Stream|Event)Query')

# (function, argument) -> flags table
FLAGS = [
    (re.compile(p), x)
    for p, x in [
        (r'^cudaStreamCreateWith\w+\.flags', 'stream_flags'),
        (r'^cudaStreamGetFlags\.flags', 'stream_flags'),
        (r'^cuStreamCreate\w*\.(Flags|flags)', 'cu_stream_flags'),
        (r'^cuStreamGetFlags\.flags', 'cu_stream_flags'),
        (r'^cuGreenCtxStreamCreate\.flags', 'cu_stream_flags'),
        (r'^cudaEventCreateWithFlags\.flags', 'event_flags'),
        (r'^cudaIpcOpenEvent\.flags', 'event_flags'),
        (r'^cudaEventRecordWithFlags\.flags', 'event_record_flags'),
        (r'^cudaStreamWaitEvent\.flags', 'event_wait_flags'),
        (r'^cuEventCreate\.Flags', 'cu_event_flags'),
        (r'^cuEventRecordWithFlags\.flags', 'cu_event_record_flags'),
        (r'^cuStreamWaitEvent\.Flags', 'cu_event_wait_flags'),
        (r'^cu(da)?EventCreateFromEGLSync\.flags', None),
        (r'^cudaHostAlloc\.flags', 'host_alloc_flags'),
        (r'^cudaHostGetFlags\.pFlags', 'host_alloc_flags'),
        (r'^cudaHostRegister\.flags', 'host_register_flags'),
        (r'^cuMemHostAlloc\.Flags', 'cu_host_alloc_flags'),
        (r'^cuMemHostGetFlags\.pFlags', 'cu_host_alloc_flags'),
        (r'^cuMemHostRegister(_v2)?\.Flags', 'cu_host_register_flags'),
        (r'^cuda(SetDeviceFlags|GetDeviceFlags|InitDevice)\.(flags|deviceFlags)', 'device_flags'),
        (r'^cudaInitDevice\.flags', 'init_device_flags'),
        (r'^cuCtx(Create\w*|GetFlags|SetFlags)\.flags', 'cu_ctx_flags'),
        (r'^cu(GL|VDPAU)CtxCreate\w*\.Flags', 'cu_ctx_flags'),
        (r'^cuVDPAUCtxCreate\w*\.flags', 'cu_ctx_flags'),
        (r'^cuDevicePrimaryCtx\w+\.flags', 'cu_ctx_flags'),
        (r'^cuGreenCtxCreate\.flags', 'cu_green_ctx_create_flags'),
        (r'^cudaMallocManaged\.flags', 'mem_attach_flags'),
        (r'^cudaStreamAttachMemAsync\.flags', 'mem_attach_flags'),
        (r'^cuMemAllocManaged\.flags', 'cu_mem_attach_flags'),
        (r'^cuStreamAttachMemAsync\.flags', 'cu_mem_attach_flags'),
        (r'^cuda(MallocArray|Malloc3DArray|MallocMipmappedArray|ArrayGetInfo)\.flags', 'array_flags'),
        (r'^cudaIpcOpenMemHandle\.flags', 'ipc_mem_flags'),
        (r'^cuIpcOpenMemHandle(_v2)?\.Flags', 'cu_ipc_mem_flags'),
        (r'^cudaOccupancy\w+\.flags', 'occupancy_flags'),
        (r'^cuOccupancy\w+\.flags', 'cu_occupancy_flags'),
        (r'^cudaGraphInstantiate(WithFlags)?\.flags', 'graph_instantiate_flags'),
        (r'^cudaGraphExecGetFlags\.flags', 'graph_instantiate_flags'),
        (r'^cuGraphInstantiateWithFlags\.flags', 'cu_graph_instantiate_flags'),
        (r'^cuGraphExecGetFlags\.flags', 'cu_graph_instantiate_flags'),
        (r'^cudaGraphDebugDotPrint\.flags', 'graph_debug_dot_flags'),
        (r'^cuGraphDebugDotPrint\.flags', 'cu_graph_debug_dot_flags'),
        (r'^cudaUserObjectCreate\.flags', 'user_object_flags'),
        (r'^cuUserObjectCreate\.flags', 'cu_user_object_flags'),
        (r'^cudaGraphRetainUserObject\.flags', 'user_object_retain_flags'),
        (r'^cuGraphRetainUserObject\.flags', 'cu_user_object_retain_flags'),
        (r'^cudaGraphConditionalHandleCreate\.flags', 'graph_cond_flags'),
        (r'^cuGraphConditionalHandleCreate\.flags', 'cu_graph_cond_flags'),
        (r'^cudaStreamUpdateCaptureDependencies\w*\.flags', 'stream_update_capture_dependencies_flags'),
        (r'^cuStreamUpdateCaptureDependencies\w*\.flags', 'cu_stream_update_capture_dependencies_flags'),
        (r'^cudaGetDriverEntryPoint\w*\.flags', 'get_driver_entry_point_flags'),
        (r'^cuGetProcAddress\w*\.flags', 'cu_driver_proc_address_flags'),
        (r'^cudaGraphicsMapFlags', 'graphics_map_flags'),
        (r'^cudaGraphicsResourceSetMapFlags\.flags', 'graphics_map_flags'),
        (r'^cudaGraphics\w*Register\w+\.flags', 'graphics_register_flags'),
        (r'^cuGraphicsResourceSetMapFlags\w*\.flags', 'cu_graphics_map_resource_flags'),
        (r'^cuGraphics\w*Register\w+\.(Flags|flags)', 'cu_graphics_register_flags'),
        (r'^cuStreamWaitValue\w*\.flags', 'cu_stream_wait_value_flags'),
        (r'^cuStreamWriteValue\w*\.flags', 'cu_stream_write_value_flags'),
        (r'^cuCtxEnablePeerAccess\.Flags', None),
        (r'^cudaDeviceEnablePeerAccess\.flags', None),
        (r'^cuMemPoolExport\w+\.handleType', None),
    ]
]

# Flag sets that the headers define as macros or as enums. id -> (prefix, pattern of names)
FLAG_SETS = {
    'stream_flags': ('cudaStream', r'^cudaStream(Default|NonBlocking)$'),
    'event_flags': ('cudaEvent', r'^cudaEvent(Default|BlockingSync|DisableTiming|Interprocess)$'),
    'event_record_flags': ('cudaEventRecord', r'^cudaEventRecord(Default|External)$'),
    'event_wait_flags': ('cudaEventWait', r'^cudaEventWait(Default|External)$'),
    'host_alloc_flags': ('cudaHostAlloc', r'^cudaHostAlloc(Default|Portable|Mapped|WriteCombined)$'),
    'host_register_flags': ('cudaHostRegister', r'^cudaHostRegister(Default|Portable|Mapped|IoMemory|ReadOnly)$'),
    'cu_host_alloc_flags': ('CU_MEMHOSTALLOC_', r'^CU_MEMHOSTALLOC_'),
    'cu_host_register_flags': ('CU_MEMHOSTREGISTER_', r'^CU_MEMHOSTREGISTER_'),
    'device_flags': (
        'cudaDevice',
        r'^cudaDevice(ScheduleAuto|ScheduleSpin|ScheduleYield|ScheduleBlockingSync|MapHost|LmemResizeToMax|SyncMemops)$',
    ),
    'init_device_flags': ('cudaInitDevice', r'^cudaInitDeviceFlagsAreValid$'),
    'mem_attach_flags': ('cudaMemAttach', r'^cudaMemAttach(Global|Host|Single)$'),
    'array_flags': (
        'cudaArray',
        r'^cudaArray(Default|Layered|SurfaceLoadStore|Cubemap|TextureGather|ColorAttachment|Sparse|DeferredMapping)$',
    ),
    'cu_array_flags': (
        'CUDA_ARRAY3D_',
        r'^CUDA_ARRAY3D_(LAYERED|SURFACE_LDST|CUBEMAP|TEXTURE_GATHER|DEPTH_TEXTURE|COLOR_ATTACHMENT|SPARSE|DEFERRED_MAPPING|VIDEO_ENCODE_DECODE)$',
    ),
    'ipc_mem_flags': ('cudaIpcMem', r'^cudaIpcMemLazyEnablePeerAccess$'),
    'occupancy_flags': ('cudaOccupancy', r'^cudaOccupancy(Default|DisableCachingOverride)$'),
    'graph_cond_flags': ('cudaGraphCond', r'^cudaGraphCondAssignDefault$'),
    'cu_graph_cond_flags': ('CU_GRAPH_COND_', r'^CU_GRAPH_COND_ASSIGN_DEFAULT$'),
    'cu_texture_flags': ('CU_TRSF_', r'^CU_TRSF_\w+$'),
}
# Enums that are sets of bits.
FLAG_ENUMS = re.compile(
    r'_flags$|Flags$|FlagBits|^CUmemAllocationHandleType|^cudaMemAllocationHandleType|CUdevSmResource'
)
NOT_FLAG_ENUMS = re.compile(r'CUmemAccess_flags|cudaMemAccessFlags|Granularity_flags|StreamWaitValue')

# An argument with a size in bytes that the call works on: by class and name; value: modifier.
SIZE_ARGS = re.compile(
    r'^(size|count|ByteCount|bytesize|bytes|length|N|sizes|width|WidthInBytes|height|Height|extent|desc|'
    r'pCopy|p|Width|pAllocateArray|pMipmappedArrayDesc)$'
)
NO_SIZE = re.compile(
    r'(TrimTo|GetInfo|GetAddressRange|cudaArrayGetInfo|MapResources|BatchDecompress|MemMapArray|SetAccess|'
    r'cuMemExport|GetSymbol|Get\w*Descriptor|MemPool(Import|Export|[GS]et)|HostNode|MemRangeGet|'
    r'cuMulticastCreate)'
)

# Arguments that are lists: (pattern on function.argument, name of the count)
LISTS = [
    (re.compile(p), c)
    for p, c in [
        (r'\.(dependencies|pDependencies|from|to|dependencyData|edgeData)$', 'numDependencies'),
        (r'GraphicsUn?[mM]apResources\.resources?$|GraphicsMapResources\.resources?$', 'count'),
        (r'\.(extSemArray|paramsArray)$', 'numExtSems'),
        (r'BatchAsync\w*\.(dsts|srcs|dptrs|sizes)$', 'count'),
        (r'BatchAsync\w*\.(attrs|attrsIdxs)$', 'numAttrs'),
        (r'BatchAsync\w*\.(prefetchLocs|prefetchLocIdxs)$', 'numPrefetchLocs'),
        (r'BatchAsync\w*\.opList$', 'numOps'),
        (r'StreamBatchMemOp\w*\.paramArray$', 'count'),
        (r'MemPoolSetAccess\.(descList|map)$|cuMemSetAccess\.desc$', 'count'),
        (r'cudaSetValidDevices\.device_arr$', 'len'),
        (r'\.mapInfoList$', 'count'),
        (r'PointerGetAttributes\.attributes$|MemRangeGetAttributes\.attributes$', 'numAttributes'),
        (r'cuLink\w+\.options$|cuModuleLoadDataEx\.options$', 'numOptions'),
        (r'\.jitOptions$', 'numJitOptions'),
        (r'\.libraryOptions$', 'numLibraryOptions'),
        (r'CooperativeKernelMultiDevice\.launchParamsList$', 'numDevices'),
        (r'cuTensorMap\w+\.globalDim$|cuTensorMap\w+\.boxDim$|cuTensorMap\w+\.elementStrides$', 'tensorRank'),
        (r'cuCtxCreate_v3\.paramsArray$', 'numParams'),
        (r'cuDevResourceGenerateDesc\.resources$', 'nbResources'),
        (r'cuMemBatchDecompressAsync\.paramsArray$', 'count'),
        (r'MemRangeGetAttributes\.dataSizes$', 'numAttributes'),
        (r'AtomicCapabilities\.operations$', 'count'),
    ]
]
OUT_LISTS = [
    (re.compile(p), c)
    for p, c in [
        (
            r'Graph(Node)?Get(Edges|Dependencies|DependentNodes)\w*\.(from|to|edgeData|pDependencies|dependencies|pDependentNodes|dependentNodes)$',
            None,
        ),
        (r'GraphGetNodes\.nodes$', 'numNodes'),
        (r'GraphGetRootNodes\.(p?[rR]ootNodes)$', None),
        (r'EnumerateKernels\.kernels$', 'numKernels'),
        (r'EnumerateFunctions\.functions$', 'numFunctions'),
        (r'GLGetDevices\w*\.pCudaDevices$', 'cudaDeviceCount'),
        (r'AtomicCapabilities\.capabilities$', 'count'),
    ]
]
# Scalars behind pointers that the call reads as well as writes.
INOUT = re.compile(
    r'\.(numDependencies|numEdges|numNodes|pNumRootNodes|numRootNodes|numDependentNodes|pNumDependencies|'
    r'pNumDependentNodes|instantiateParams)$|ThreadExchangeStreamCaptureMode\.mode$|'
    r'SetDoubleFor\w+\.d$|DumpToMemory\.size$|Coredump\w*\.size$|cuDevSmResourceSplitByCount\.nbGroups$|'
    r'LogsDump\w+\.iterator$'
)
# Pointers that are only shown as addresses.
PLAIN = re.compile(
    r'\.(args|kernelParams|extra|optionValues|jitOptionsValues|libraryOptionValues|data|value_ptr|conn|'
    r'globalStrides|pixelBox\w+|vdpGetProcAddress|image|fatCubin|userData|log|'
    r'prop_never)$|CheckpointProcess\w+\.args|PointerGetAttributes\.data|tensorMap$|luid$|nvSciSyncAttrList|'
    r'GetExportTable\.|\.texref$|\.surfref$|\.remaining$|\.resource$|\.result$|\.input$'
)
PLAIN_OVERRIDE = re.compile(
    r'(GetTextureReference|GetSurfaceReference|GetExportTable)|DevResource\.resource$|cuda?Graphics|'
    r'cuGraphicsSub|cuGraphics|cudaGraphics|cuDeviceGetDevResource|ModuleLoadData'
)
FUNC_ARGS = re.compile(r'^(func|entryFuncAddr|f|hfunc|function)$')
BOOLS = re.compile(r'^(isEnabled|canAccessPeer|active)$')

# What calls of the function do (user/api/traits.h): flag, classes, pattern.
TRAITS = [
    (flag, classes.split(), re.compile(p))
    for flag, classes, p in [
        ('PTOP', 'COPY', r'Peer'),
        ('HTOD', 'COPY', r'cuMemcpyHto[AD]'),
        ('DTOH', 'COPY', r'cuMemcpy[AD]toH'),
        ('DTOD', 'COPY', r'cuMemcpy[AD]to[AD]'),
        ('NO_RECORD', 'COPY', r'Prefetch|Decompress'),
        ('ASYNC', 'COPY SET MEMORY', r'Async'),
        ('LINEAR', 'COPY', r'^cudaMemcpy(Async)?$|^cuMemcpy(HtoD|DtoH)(Async)?_v2$'),
        ('GRAPH_LAUNCH', 'GRAPH', r'^cu(da)?GraphLaunch'),
        ('LAUNCHES', 'LAUNCH', r'Launch(?!HostFunc)'),
        ('CREATES', 'EVENT STREAM', r'Create'),
        ('DESTROYS', 'EVENT STREAM', r'Destroy'),
        ('POLLS', 'EVENT STREAM', r'(Event|Stream)Query'),
        ('RECORDS', 'EVENT', r'EventRecord|RecordEvent'),
        ('LOADS', 'MODULE', r'(Module|Library)Load|LinkComplete'),
        ('WAITS_STREAM', 'SYNC', r'Stream'),
        ('WAITS_EVENT', 'SYNC', r'Event'),
        ('WAITS_DEVICE', 'SYNC', r'(Device|Ctx|Thread)Synchronize'),
    ]
]

# Structs: member that selects a union, and the union's members by its values.
SELECT = {
    'cudaLaunchAttribute': 'id',
    'CUlaunchAttribute_st': 'id',
    'cudaGraphNodeParams': 'type',
    'CUgraphNodeParams_st': 'type',
    'cudaExternalMemoryHandleDesc': 'type',
    'CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st': 'type',
    'cudaExternalSemaphoreHandleDesc': 'type',
    'CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st': 'type',
    'cudaResourceDesc': 'resType',
    'CUDA_RESOURCE_DESC_st': 'resType',
    'CUstreamBatchMemOpParams_union': 'operation',
    'cudaMemcpy3DOperand': 'type',
    'CUmemcpy3DOperand_st': 'type',
    'CUarrayMapInfo_st': 'resourceType',
    'cudaAsyncNotificationInfo': 'type',
    'CUexecAffinityParam_st': 'type',
}
