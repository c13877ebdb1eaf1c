"""A real ZooKeeper through kazoo. Only the modules of this package import kazoo.

Where kcontrol differs from kazoo:

* kazoo's threads call watches and complete requests. Here these threads only append to a queue; all else runs in the caller.
* kazoo's public calls normalize paths (`/a//b` becomes `/a/b`). Here requests are made of kazoo's wire records, so that the
  server checks the path and the reply's header gives the zxid.
* kazoo forgets the watches when the connection is lost. Here SetWatches sets them again, as Java's client does.
* kazoo opens a new session after expiry. Here expiry ends the client; only `connect` opens a new session.

Users of `lab.playground` call kazoo itself: `playground_client.py` lets them cut the connection of kazoo's client, and
`memory_client.py` is an equivalent client for the ZooKeeper in memory.
"""

from kcontrol.zookeeper.kazoo.ensemble import KazooZooKeeper, RootInUse
from kcontrol.zookeeper.kazoo.session import KazooSession

__all__ = ["KazooSession", "KazooZooKeeper", "RootInUse"]
