"""A file as torch.save writes one, made without torch from a safetensors file: what tests/tools/convert_adapter_test.c converts.

    torch_file.py IN.safetensors OUT.pt [PREFIX]

PREFIX goes in front of every name but norm.weight. All tensors share one storage, each at its offset, as views of one tensor do.
"""
import collections
import json
import pickle
import struct
import sys
import types
import zipfile

STORAGES = {"BF16": ("BFloat16Storage", 2), "F16": ("HalfStorage", 2), "F32": ("FloatStorage", 4)}
torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules.update({"torch": torch, "torch._utils": utils})
for storage, _ in STORAGES.values():
    setattr(torch, storage, type(storage, (), {"__module__": "torch"}))


def _rebuild_tensor_v2(*arguments):
    raise NotImplementedError


_rebuild_tensor_v2.__module__ = "torch._utils"
utils._rebuild_tensor_v2 = _rebuild_tensor_v2


class Storage:
    def __init__(self, dtype, data):
        name, self.size = STORAGES[dtype]
        self.kind, self.data = getattr(torch, name), data


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
            return "storage", x.kind, "0", "cpu", len(x.data) // x.size


def main(source, out, prefix=""):
    with open(source, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        header.pop("__metadata__", None)
        data = f.read()
    dtype = next(iter(header.values()))["dtype"]
    assert all(x["dtype"] == dtype for x in header.values())
    storage = Storage(dtype, data)
    tensors = collections.OrderedDict(
        (("" if n == "norm.weight" else prefix) + n, Tensor(storage, x["data_offsets"][0] // storage.size, x["shape"])) for n, x in header.items())
    with zipfile.ZipFile(out, "w") as archive:
        with archive.open("archive/data.pkl", "w") as f:
            Pickler(f, protocol=2).dump(tensors)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", data)
        archive.writestr("archive/version", "3\n")


main(*sys.argv[1:])
