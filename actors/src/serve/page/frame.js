// Draws once per frame. Events come in bursts; what they change is marked and drawn together.
"use strict";

const frame = (() => {
  const painters = new Map();
  const dirty = new Set();
  const queue = [];
  let isDue = false;
  let drawn = 0;

  function later() {
    if (isDue) return;
    isDue = true;
    // A hidden page gets no frames. What waits must not pile up meanwhile.
    if (document.hidden) setTimeout(run, 1000);
    else requestAnimationFrame(run);
  }

  function run() {
    isDue = false;
    drawn += 1;
    for (const work of queue.splice(0)) work();
    const names = [...dirty];
    dirty.clear();
    for (const name of names) painters.get(name)?.();
  }

  /** Names what `paint` draws, so that others can ask for it. */
  function on(name, paint) {
    painters.set(name, paint);
  }

  /** Has these drawn with the next frame, however often they are asked for. */
  function draw(...names) {
    for (const name of names) dirty.add(name);
    later();
  }

  /** Does this with the next frame, in order, before anything is drawn. */
  function push(work) {
    queue.push(work);
    later();
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isDue) requestAnimationFrame(run);
  });

  return { on, draw, push, drawn: () => drawn };
})();
