"""A file as torch.save writes one, made without torch from a safetensors file: what tests/tools/convert_adapter_test.c converts.

    torch_file.py IN.safetensors OUT.pt [PREFIX]

PREFIX goes in front of every name but norm.weight. Tensors of a type share one storage, each at its offset, as views of one do.
"""
import collections
import json
import pickle
import struct
import sys
import types
import zipfile

STORAGES = {"BF16": ("BFloat16Storage", 2), "F16": ("HalfStorage", 2), "F32": ("FloatStorage", 4), "I64": ("LongStorage", 8),
            "BOOL": ("BoolStorage", 1)}
torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules.update({"torch": torch, "torch._utils": utils})
for storage, _ in STORAGES.values():
    setattr(torch, storage, type(storage, (), {"__module__": "torch"}))


def _rebuild_tensor_v2(*arguments):
    raise NotImplementedError


_rebuild_tensor_v2.__module__ = "torch._utils"
utils._rebuild_tensor_v2 = _rebuild_tensor_v2


class Storage:
    def __init__(self, dtype, key):
        name, self.size = STORAGES[dtype]
        self.kind, self.key, self.data = getattr(torch, name), key, b""


class Tensor:
    def __init__(self, storage, offset, shape):
        self.storage, self.offset, self.shape = storage, offset, tuple(shape)

    def __reduce__(self):
        stride = [1]
        for width in reversed(self.shape[1:]):
            stride.insert(0, stride[0] * width)
        return _rebuild_tensor_v2, (self.storage, self.offset, self.shape, tuple(stride), False, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, x):
        if isinstance(x, Storage):
            return "storage", x.kind, x.key, "cpu", len(x.data) // x.size


def main(source, out, prefix=""):
    with open(source, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        header.pop("__metadata__", None)
        data = f.read()
    storages, tensors = {}, collections.OrderedDict()
    for n, x in header.items():
        storage = storages.setdefault(x["dtype"], Storage(x["dtype"], str(len(storages))))
        tensors[("" if n == "norm.weight" else prefix) + n] = Tensor(storage, len(storage.data) // storage.size, x["shape"])
        storage.data += data[slice(*x["data_offsets"])]
    with zipfile.ZipFile(out, "w") as archive:
        with archive.open("archive/data.pkl", "w") as f:
            Pickler(f, protocol=2).dump(tensors)
        archive.writestr("archive/byteorder", "little")
        for storage in storages.values():
            archive.writestr(f"archive/data/{storage.key}", storage.data)
        archive.writestr("archive/version", "3\n")


main(*sys.argv[1:])
