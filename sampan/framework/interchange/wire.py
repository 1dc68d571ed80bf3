"""The protobuf messages of a ProgramDesc, built from a compact description: no generated code, no protoc.

Each line: the message's name, then its fields as ``number:type:name``; a ``*`` after the type: repeated. Numbers and types are the format's.
Enumerations are read as int32, so that a number of a later version is kept instead of dropped.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from .model import damaged

_MESSAGES = """
Version 1:int64:version
Complex 1:double:r 2:double:i
Scalar 1:int32:type 2:bool:b 3:int64:i 4:double:r 5:Complex:c
OpAttr 1:string:name 2:int32:type 3:int32:i 4:float:f 5:bytes:s 6:int32*:ints 7:float*:floats 8:bytes*:strings 10:bool:b 11:bool*:bools \
12:int32:block_idx 13:int64:l 14:int32*:blocks_idx 15:int64*:longs 16:double*:float64s 17:string:var_name 18:string*:vars_name \
19:double:float64 20:Scalar:scalar 21:Scalar*:scalars
OpVar 1:string:parameter 2:string*:arguments
OpDesc 3:string:type 1:OpVar*:inputs 2:OpVar*:outputs 4:OpAttr*:attrs 5:bool:is_target
TensorDesc 1:int32:data_type 2:int64*:dims
LevelTensorDesc 1:TensorDesc:tensor 2:int32:lod_level
VarType 1:int32:type 2:TensorDesc:selected_rows 3:LevelTensorDesc:lod_tensor 4:LevelTensorDesc:tensor_array
VarDesc 1:string:name 2:VarType:type 3:bool:persistable 4:bool:need_check_feed 5:bool:is_parameter 6:bool:stop_gradient
BlockDesc 1:int32:idx 2:int32:parent_idx 3:VarDesc*:vars 4:OpDesc*:ops 5:int32:forward_block_idx
OpVersion 1:int32:version
OpVersionPair 1:string:op_name 2:OpVersion:op_version
OpVersionMap 1:OpVersionPair*:pair
ProgramDesc 1:BlockDesc*:blocks 4:Version:version 5:OpVersionMap:op_version_map
"""


def message_class(package: str, messages: str, root: str) -> Any:
    """The class of the message ``root``, from a description of it and of those that it holds: see this module's docstring."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{package.replace('.', '/')}.proto", package=package, syntax="proto2")
    for line in messages.strip().splitlines():
        name, *fields = line.split()
        described = file.message_type.add(name=name)
        for text in fields:
            number, kind, field_name = text.split(":")
            scalar = kind.rstrip("*")
            made = described.field.add(name=field_name, number=int(number))
            made.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
            if scalar[0].isupper():
                made.type, made.type_name = field.TYPE_MESSAGE, f".{package}.{scalar}"
            else:
                made.type = getattr(field, f"TYPE_{scalar.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{root}"))


ProgramDesc = message_class("sampan.interchange", _MESSAGES, "ProgramDesc")


def parse(content: bytes, what: str) -> Any:
    """The ProgramDesc in these bytes.

    Raises:
        ModelFileError: they are no such message.
    """
    program = ProgramDesc()
    try:
        program.ParseFromString(content)
    except DecodeError as error:
        raise damaged(what, f"its bytes are no ProgramDesc ({error})") from error
    return program
