# SPDX-License-Identifier: BSD-2-Clause
"""cudnn_plan.py LIBRARY - describes a convolution to NVIDIA's own cuDNN, without a GPU: without one no plan can be made final, so
that its calls fail, but what they were to compute has been said. Prints what each call returned."""
import ctypes
import sys

cudnn = ctypes.CDLL(sys.argv[1])
Array = ctypes.c_int64 * 4
INT64, DESCRIPTOR, DATA_TYPE = 3, 15, 1
# of cudnnBackendDescriptorType_t
CONFIG, ENGINE, PLAN, FORWARD, GRAPH, TENSOR = 3, 2, 5, 10, 15, 17


def descriptor(kind):
    made = ctypes.c_void_p()
    print('create', cudnn.cudnnBackendCreateDescriptor(kind, ctypes.byref(made)))
    return made


def set_to(of, name, element):
    print('set', name, cudnn.cudnnBackendSetAttribute(of, name, DESCRIPTOR, ctypes.c_int64(1), ctypes.byref(element)))


def tensor(*sizes):
    made = descriptor(TENSOR)
    strides = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1]
    half = ctypes.c_int(2)
    for name, kind, count, value in ((901, DATA_TYPE, 1, half), (902, INT64, 4, Array(*sizes)), (903, INT64, 4, Array(*strides)),
                                     (906, INT64, 1, ctypes.c_int64(7)), (900, INT64, 1, ctypes.c_int64(16))):
        print('set', name, cudnn.cudnnBackendSetAttribute(made, name, kind, ctypes.c_int64(count), ctypes.byref(value)))
    print('finalize', cudnn.cudnnBackendFinalize(made))
    return made


operation, graph, engine, config, plan = map(descriptor, (FORWARD, GRAPH, ENGINE, CONFIG, PLAN))
for name, sizes in ((704, (32, 64, 56, 56)), (703, (128, 64, 3, 3)), (705, (32, 128, 54, 54))):
    set_to(operation, name, tensor(*sizes))
set_to(graph, 801, operation)
set_to(engine, 1300, graph)
set_to(config, 300, engine)
set_to(plan, 401, config)
print('execute', cudnn.cudnnBackendExecute(None, plan, None))

old = [ctypes.c_void_p() for _ in range(3)]
for one, make in zip(old, ('Tensor', 'Filter', 'Tensor')):
    print('create', getattr(cudnn, f'cudnnCreate{make}Descriptor')(ctypes.byref(one)))
print('set', cudnn.cudnnSetTensor4dDescriptor(old[0], 0, 0, 32, 64, 56, 56))
print('set', cudnn.cudnnSetFilter4dDescriptor(old[1], 0, 0, 128, 64, 3, 3))
print('set', cudnn.cudnnSetTensorNdDescriptor(old[2], 0, 4, (ctypes.c_int * 4)(32, 128, 54, 54), (ctypes.c_int * 4)(128 * 54 * 54, 54 * 54, 54, 1)))
print('forward', cudnn.cudnnConvolutionForward(None, None, old[0], None, old[1], None, None, 0, None, ctypes.c_size_t(0), None, old[2], None))
