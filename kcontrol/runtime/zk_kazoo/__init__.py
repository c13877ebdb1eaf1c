"""A real ZooKeeper through kazoo. Only the modules of this package import it.

What kazoo does of its own accord, and what is made of it here:

* Its threads call watches and complete requests. Here they only put names into a queue; everything else runs in the caller.
* Its public calls tidy paths up (`/a//b` becomes `/a/b`). Here requests are made of kazoo's wire records, so that the server's
  own verdict is seen, and with it the zxid in the reply's header.
* On a lost connection it forgets the watches. Here they are set again with SetWatches, as Java's client does.
* After expiry it would go on with a new session. Here that is the end of the client; a new session comes from `connect` alone.

In a learner's hands kazoo is as it is: `hands` puts a line that can be cut around its own client, `twin` is the like of it on the
ZooKeeper in memory, for `lab.playground`.
"""

from kcontrol.runtime.zk_kazoo.ensemble import KazooZooKeeper, RootInUse
from kcontrol.runtime.zk_kazoo.session import KazooSession

__all__ = ["KazooSession", "KazooZooKeeper", "RootInUse"]
