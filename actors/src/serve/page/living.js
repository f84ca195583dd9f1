// Follows the tree of actors while somebody sees it. Browsers give all tabs together few connections to one
// server, so a tree that nobody sees has none.
"use strict";

const livingTree = (() => {
  function create({ isSeen, onChange, onState }) {
    const byId = new Map();
    let stream;

    function take(event) {
      if (event.type === "tree") {
        byId.clear();
        for (const it of event.actors ?? []) byId.set(String(it.id), server.actor(it));
      } else if (event.type === "actor_started" || event.type === "actor_changed") {
        byId.set(String(event.actor.id), server.actor(event.actor));
      } else if (event.type === "actor_ended") {
        byId.delete(String(event.actor.id));
      } else {
        return;
      }
      onChange([...byId.values()]);
    }

    /** Begins to follow, goes on, or stops, as the tree is seen or not. */
    function follow() {
      if (!isSeen()) {
        stream?.stop();
        stream = undefined;
        return;
      }
      stream ??= server.treeEvents({ onEvent: (event) => frame.push(() => take(event)), onState });
    }

    return { follow };
  }

  return { create };
})();
