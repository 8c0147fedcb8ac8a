"""Prints the functions of a catalog as vgi-python's own client sees them, one `kind schema.function` a line.

Runs in the environment of that client: reference_client.py URL CATALOG [PROTOCOL VERSION]
"""

import logging
import sys

from vgi.catalog.catalog_interface import SchemaObjectType
from vgi.client import Client

url, catalog, *protocol = sys.argv[1:]
if protocol:
    from vgi.protocol import VgiProtocol

    VgiProtocol.protocol_name, VgiProtocol.protocol_version = protocol
logging.disable(logging.CRITICAL)

options = {}
try:
    from vgi.http.demo_storage import localhost_only_validator
    from vgi_rpc import ExternalLocationConfig

    # A server that stores large answers outside of its replies serves them without TLS on loopback.
    options["external_location"] = ExternalLocationConfig(url_validator=localhost_only_validator)
except ImportError:
    pass

with Client.from_http(url, **options) as client:
    attached = client.catalog_attach(name=catalog, options={}, data_version_spec=None, implementation_version=None)
    opaque = attached.attach_opaque_data
    for schema in client.schemas(attach_opaque_data=opaque):
        path = getattr(schema, "path", None) or [schema.name]
        where = {"path": path} if hasattr(schema, "path") else {"name": schema.name}
        for kind in (SchemaObjectType.TABLE_FUNCTION, SchemaObjectType.SCALAR_FUNCTION, SchemaObjectType.AGGREGATE_FUNCTION):
            for function in client.schema_contents(attach_opaque_data=opaque, type=kind, **where):
                name = getattr(function.function_type, "name", str(function.function_type)).lower()
                name = "buffering" if name == "table_buffering" else name
                print(f"{name} function {'.'.join(path)}.{function.name}")
